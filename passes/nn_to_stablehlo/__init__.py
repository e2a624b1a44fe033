"""What convert-nn-to-stablehlo makes of operations of nn."""
