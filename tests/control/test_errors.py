"""An error of the control socket says what happened, whose fault it is, and what to do."""

from agentsh_net.control.errors import ControlError


def test_an_error_is_three_texts_on_the_wire():
    error = ControlError("no such tool", kind="denied", remedy="see the list")
    assert error.to_json() == {"kind": "denied", "message": "no such tool", "remedy": "see the list"}
