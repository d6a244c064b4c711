#pragma once

#include <vector>

#include "dns/message/message.h"
#include "dns/message/message_template.h"
#include "worker/answer/answer.h"

namespace pando::worker {

/// Writes the answer's RCODE, AA and sections after `question`. `writer` already holds this
/// question, resolve() was given the same one, and room for OPT and TSIG is reserved. RRsets and
/// their signatures are written whole or not at all.
/// Sets TC and returns true when a required entry did not fit (RFC 2181 §9, RFC 9471 §3). Nothing
/// is written after that place.
/// A non-null `ends` receives the ends of the authority section and of each additional RRset.
bool render(const Answer& answer, const dns::Question& question, dns::MessageWriter& writer,
            std::vector<dns::RRsetEnd>* ends = nullptr);

/// Appends the NSEC RRset of `record` with its signatures to the authority section: the NSEC that
/// covers the question's name, below the closest encloser `encloser` (a part of `question`'s name).
/// False when it does not fit.
[[nodiscard]] bool render_covering_nsec(const zone::RecordView& record, dns::NameView apex,
                                        dns::NameView encloser, const dns::Question& question,
                                        dns::MessageWriter& writer);

/// Writes the authority section alone, after the records that `writer` has. False when a required
/// entry does not fit.
[[nodiscard]] bool render_authority(const Answer& answer, const dns::Question& question,
                                    dns::MessageWriter& writer);

}  // namespace pando::worker
