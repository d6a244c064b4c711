#pragma once

#include "zone/record/changeset.h"
#include "zone/record/record_codec.h"

namespace pando::zone {

enum class SoaRecord : std::uint8_t { kCompared, kLeftOut };

/// Appends to `out` the changeset from the sets of `before` to those of `after`, both normalised. A
/// set with another TTL goes out and comes in whole. With kLeftOut a SOA is left to the caller; its
/// signatures are compared even so, without regard to their TTL.
void append_changes(const dns::Name& owner, const NameDraft& before, const NameDraft& after,
                    SoaRecord soa, Changeset& out);

}  // namespace pando::zone
