"""Running a TaskGraph: on threads of this process (`local`) or on ipyparallel engines (`cluster`)."""
