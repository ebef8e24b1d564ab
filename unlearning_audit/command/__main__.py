"""``python -m unlearning_audit.command``: the command ``audit`` where its script is not on the path."""

from unlearning_audit.command import main

main()
