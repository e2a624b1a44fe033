"""The front end for networks of MXNet: -symbol.json with weights in .params."""
