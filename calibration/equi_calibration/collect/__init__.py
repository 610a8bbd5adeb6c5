"""Recording a data set: poses, cameras, arm, files."""
