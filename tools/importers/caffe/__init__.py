"""The front end for networks of Caffe: .prototxt with weights in .caffemodel."""
