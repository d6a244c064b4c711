#pragma once

#include <vector>

#include "dns/message/message.h"
#include "dns/message/message_template.h"
#include "worker/answer/answer.h"

namespace pando::worker {

/// Writes the answer's RCODE, AA and sections behind `question`, which `writer` already holds and
/// resolve() was given; room for OPT and TSIG has been reserved. RRsets and their signatures go in
/// whole or not at all. Sets TC and returns true when something required did not fit (RFC 2181 §9,
/// RFC 9471 §3): behind that place nothing is written.
/// With `ends`, also notes where the authority section and each additional RRset after it end.
bool render(const Answer& answer, const dns::Question& question, dns::MessageWriter& writer,
            std::vector<dns::RRsetEnd>* ends = nullptr);

}  // namespace pando::worker
