"""Who may call what: rules over servers, tools and arguments, the steps of a verdict, and the verdict on what is not a plain call."""
