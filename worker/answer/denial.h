#pragma once

#include "worker/answer/walk.h"

/// Proofs of non-existence (RFC 4035 §3.1.3, RFC 5155 §7.2). Each function adds nothing when the
/// client did not ask for proofs or the zone has none. Each record is added once.
namespace pando::worker {

/// The walk's name does not exist, the closest encloser exists, and no wildcard exists directly
/// below the closest encloser. `wildcard` is the result of looking that wildcard up.
void prove_name_error(Walk& walk, dns::NameView closest_encloser,
                      const zone::Match& wildcard) noexcept;

/// The walk's name exists, perhaps as an empty non-terminal, but not with this type. `record` is
/// null for an empty non-terminal. A cut without DS is proved in the same way.
void prove_nodata(Walk& walk, dns::NameView name, const zone::RecordView& record) noexcept;

/// The walk's name does not exist and the wildcard below the closest encloser lacks the type.
void prove_wildcard_nodata(Walk& walk, dns::NameView closest_encloser) noexcept;

/// The answer was synthesized: the walk's name itself does not exist.
void prove_wildcard_answer(Walk& walk, dns::NameView closest_encloser) noexcept;

/// One namespace per mechanism; the prove_... functions above choose by the zone.
namespace nsec {
void prove_name_error(Walk& walk, const zone::Match& wildcard) noexcept;
void prove_nodata(Walk& walk, dns::NameView name, const zone::RecordView& record) noexcept;
void prove_wildcard_nodata(Walk& walk, dns::NameView closest_encloser) noexcept;
void prove_wildcard_answer(Walk& walk) noexcept;
}  // namespace nsec

namespace nsec3 {
void prove_name_error(Walk& walk, dns::NameView closest_encloser) noexcept;
void prove_nodata(Walk& walk, dns::NameView name) noexcept;
void prove_wildcard_nodata(Walk& walk, dns::NameView closest_encloser) noexcept;
void prove_wildcard_answer(Walk& walk, dns::NameView closest_encloser) noexcept;
}  // namespace nsec3

}  // namespace pando::worker
