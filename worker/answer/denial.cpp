#include "worker/answer/denial.h"

namespace pando::worker {

namespace {
bool uses_nsec3(const Walk& walk) noexcept { return walk.zone.denial() == zone::Denial::kNsec3; }
}  // namespace

void prove_name_error(Walk& walk, dns::NameView closest_encloser,
                      const zone::Match& wildcard) noexcept {
  if (!walk.proves()) return;
  uses_nsec3(walk) ? nsec3::prove_name_error(walk, closest_encloser)
                   : nsec::prove_name_error(walk, wildcard);
}

void prove_nodata(Walk& walk, dns::NameView name, const zone::RecordView& record) noexcept {
  if (!walk.proves()) return;
  uses_nsec3(walk) ? nsec3::prove_nodata(walk, name) : nsec::prove_nodata(walk, name, record);
}

void prove_wildcard_nodata(Walk& walk, dns::NameView closest_encloser) noexcept {
  if (!walk.proves()) return;
  uses_nsec3(walk) ? nsec3::prove_wildcard_nodata(walk, closest_encloser)
                   : nsec::prove_wildcard_nodata(walk, closest_encloser);
}

void prove_wildcard_answer(Walk& walk, dns::NameView closest_encloser) noexcept {
  if (!walk.proves()) return;
  uses_nsec3(walk) ? nsec3::prove_wildcard_answer(walk, closest_encloser)
                   : nsec::prove_wildcard_answer(walk);
}

}  // namespace pando::worker
