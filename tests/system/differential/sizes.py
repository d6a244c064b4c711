"""What answers over UDP must be, given the whole answers as TCP brought them."""

import rules

OPT_OCTETS = 11


def fault(message, octets, whole, whole_octets, size):
    """What is wrong with a message of at most `size` octets, or None."""
    if octets > size:
        return f"{octets} octets"
    if (message.rcode, message.aa) != (whole.rcode, whole.aa):
        return "RCODE or AA is another one than over TCP"
    for section in ("answer", "authority", "additional"):
        if not rules.records(getattr(message, section)) <= rules.records(getattr(whole, section)):
            return f"the {section} section has what TCP does not bring"
    if message.tc:
        return needless_cut(message, whole, whole_octets, size)
    # A denial that was kept has its records in another order than one that was worked out.
    if message.answer != whole.answer or rules.records(message.authority) != rules.records(whole.authority):
        return "something is missing without TC"
    if rules.required_glue(message) != rules.required_glue(whole):
        return "required glue is missing without TC"  # RFC 9471 §3.1
    return None


def needless_cut(message, whole, whole_octets, size):
    """TC although everything that is required would fit."""
    required = rules.required_glue(whole)
    optional = any(record not in required for record in whole.additional)
    opt = OPT_OCTETS if message.edns and not whole.edns else 0
    if not optional and whole_octets + opt <= size:
        return "TC, and all would fit"
    return None


def only_ours_is_cut(theirs, their_whole, their_whole_octets, size):
    """Why our message has TC and a peer's has not; None when there is no reason."""
    opt = OPT_OCTETS if theirs.edns and not their_whole.edns else 0
    if rules.required_glue(theirs) != rules.required_glue(their_whole):
        return "TC: the peer leaves required glue out without it"
    if theirs.additional != their_whole.additional or their_whole_octets + opt <= size:
        return "TC: the peer's answer is smaller"
    if (theirs.answer, theirs.authority) != (their_whole.answer, their_whole.authority):
        return "TC: the peer's answer is another one over UDP"
    return None
