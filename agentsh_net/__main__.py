"""`python -m agentsh_net`: the command line."""

from agentsh_net.cli.main import main

if __name__ == "__main__":
    main()
