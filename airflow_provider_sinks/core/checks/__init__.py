"""What a validation looks at, one file per family: from facts that clients have seen to checks. Pure."""
