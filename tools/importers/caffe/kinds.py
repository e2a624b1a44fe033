"""The fields of Caffe's messages, by the name of the field that holds a message of the kind.

Source: src/caffe/proto/caffe.proto of BVLC/caffe, 1.0.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DATA = "source batch_size rand_skip scale mean_file crop_size mirror"

NET = _names("name input input_shape input_dim force_backward state debug_info layer layers")

SHAPE = _names("dim")

STATE = _names("phase level stage")

RULE = _names("phase min_level max_level stage not_stage")

PARAM = _names("name share_mode lr_mult decay_mult")

FILLER = _names("type value min max mean std sparse variance_norm")

SOLVER = _names(
    "net net_param train_net test_net train_net_param test_net_param train_state test_state "
    "test_iter test_interval test_compute_loss test_initialization base_lr display average_loss "
    "max_iter iter_size lr_policy gamma power momentum weight_decay regularization_type stepsize "
    "stepvalue clip_gradients snapshot snapshot_prefix snapshot_diff snapshot_format solver_mode "
    "device_id random_seed type delta momentum2 rms_decay debug_info snapshot_after_train "
    "solver_type layer_wise_reduce weights"
)

PARAMETERS: dict[str, frozenset[str]] = {
    "transform_param": _names("scale mirror crop_size mean_file mean_value force_color force_gray"),
    "loss_param": _names("ignore_label normalization normalize"),
    "accuracy_param": _names("top_k axis ignore_label"),
    "argmax_param": _names("out_max_val top_k axis"),
    "batch_norm_param": _names("use_global_stats moving_average_fraction eps"),
    "bias_param": _names("axis num_axes filler"),
    "clip_param": _names("min max"),
    "concat_param": _names("axis concat_dim"),
    "contrastive_loss_param": _names("margin legacy_version"),
    "convolution_param": _names(
        "num_output bias_term pad kernel_size stride dilation pad_h pad_w kernel_h kernel_w "
        "stride_h stride_w group weight_filler bias_filler engine axis force_nd_im2col"
    ),
    "crop_param": _names("axis offset"),
    "data_param": _names(f"{_DATA} backend force_encoded_color prefetch"),
    "dropout_param": _names("dropout_ratio"),
    "dummy_data_param": _names("data_filler shape num channels height width"),
    "eltwise_param": _names("operation coeff stable_prod_grad"),
    "elu_param": _names("alpha"),
    "embed_param": _names("num_output input_dim bias_term weight_filler bias_filler"),
    "exp_param": _names("base scale shift"),
    "flatten_param": _names("axis end_axis"),
    "hdf5_data_param": _names("source batch_size shuffle"),
    "hdf5_output_param": _names("file_name"),
    "hinge_loss_param": _names("norm"),
    "image_data_param": _names(f"{_DATA} shuffle new_height new_width is_color root_folder"),
    "infogain_loss_param": _names("source axis"),
    "inner_product_param": _names("num_output bias_term weight_filler bias_filler axis transpose"),
    "input_param": _names("shape"),
    "log_param": _names("base scale shift"),
    "lrn_param": _names("local_size alpha beta norm_region k engine"),
    "memory_data_param": _names("batch_size channels height width"),
    "mvn_param": _names("normalize_variance across_channels eps"),
    "parameter_param": _names("shape"),
    "pooling_param": _names(
        "pool pad pad_h pad_w kernel_size kernel_h kernel_w stride stride_h stride_w engine "
        "global_pooling round_mode"
    ),
    "power_param": _names("power scale shift"),
    "prelu_param": _names("filler channel_shared"),
    "python_param": _names("module layer param_str share_in_parallel"),
    "recurrent_param": _names("num_output weight_filler bias_filler debug_info expose_hidden"),
    "reduction_param": _names("operation axis coeff"),
    "relu_param": _names("negative_slope engine"),
    "reshape_param": _names("shape axis num_axes"),
    "scale_param": _names("axis num_axes filler bias_term bias_filler"),
    "sigmoid_param": _names("engine"),
    "slice_param": _names("axis slice_point slice_dim"),
    "softmax_param": _names("engine axis"),
    "spp_param": _names("pyramid_height pool engine"),
    "swish_param": _names("beta"),
    "tanh_param": _names("engine"),
    "threshold_param": _names("threshold"),
    "tile_param": _names("axis tiles"),
    "window_data_param": _names(
        "source scale mean_file batch_size crop_size mirror fg_threshold bg_threshold "
        "fg_fraction context_pad crop_mode cache_images root_folder"
    ),
}
"""The fields of the messages that hold the settings of layers."""

LAYER = _names(
    "name type bottom top phase loss_weight param blobs propagate_down include exclude"
) | frozenset(PARAMETERS)

OLD_LAYER = _names(
    "name type bottom top include exclude blobs param blob_share_mode blobs_lr weight_decay "
    "loss_weight layer"
) | frozenset(PARAMETERS)
"""The fields of a layer in `layers`, the form before 2014."""

OLD_TYPES: dict[str, tuple[int, str]] = {
    "ABSVAL": (35, "AbsVal"),
    "ACCURACY": (1, "Accuracy"),
    "ARGMAX": (30, "ArgMax"),
    "BNLL": (2, "BNLL"),
    "CONCAT": (3, "Concat"),
    "CONTRASTIVE_LOSS": (37, "ContrastiveLoss"),
    "CONVOLUTION": (4, "Convolution"),
    "DATA": (5, "Data"),
    "DECONVOLUTION": (39, "Deconvolution"),
    "DROPOUT": (6, "Dropout"),
    "DUMMY_DATA": (32, "DummyData"),
    "EUCLIDEAN_LOSS": (7, "EuclideanLoss"),
    "ELTWISE": (25, "Eltwise"),
    "EXP": (38, "Exp"),
    "FLATTEN": (8, "Flatten"),
    "HDF5_DATA": (9, "HDF5Data"),
    "HDF5_OUTPUT": (10, "HDF5Output"),
    "HINGE_LOSS": (28, "HingeLoss"),
    "IM2COL": (11, "Im2col"),
    "IMAGE_DATA": (12, "ImageData"),
    "INFOGAIN_LOSS": (13, "InfogainLoss"),
    "INNER_PRODUCT": (14, "InnerProduct"),
    "LRN": (15, "LRN"),
    "MEMORY_DATA": (29, "MemoryData"),
    "MULTINOMIAL_LOGISTIC_LOSS": (16, "MultinomialLogisticLoss"),
    "MVN": (34, "MVN"),
    "POOLING": (17, "Pooling"),
    "POWER": (26, "Power"),
    "RELU": (18, "ReLU"),
    "SIGMOID": (19, "Sigmoid"),
    "SIGMOID_CROSS_ENTROPY_LOSS": (27, "SigmoidCrossEntropyLoss"),
    "SILENCE": (36, "Silence"),
    "SOFTMAX": (20, "Softmax"),
    "SOFTMAX_LOSS": (21, "SoftmaxWithLoss"),
    "SPLIT": (22, "Split"),
    "SLICE": (33, "Slice"),
    "TANH": (23, "TanH"),
    "WINDOW_DATA": (24, "WindowData"),
    "THRESHOLD": (31, "Threshold"),
}
"""The numbers and the present types of layers, by what `layers` calls them."""

LOSSES = frozenset(
    {
        "SoftmaxWithLoss",
        "EuclideanLoss",
        "SigmoidCrossEntropyLoss",
        "HingeLoss",
        "ContrastiveLoss",
        "InfogainLoss",
        "MultinomialLogisticLoss",
    }
)
"""The layers whose first top is part of the objective unless loss_weight says otherwise."""
