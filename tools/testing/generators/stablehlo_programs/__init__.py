"""Random programs of stablehlo: operations of all families, chained, in functions and regions."""
