"""Run the command ``audit`` by ``python -m unlearning_audit.command``, if its script is not on the path."""

from unlearning_audit.command import main

main()
