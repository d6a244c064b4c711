#include "manager/support/withheld_data.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>

#include "base/unix_time.h"
#include "zone/history/zone_snapshot.h"

namespace pando::manager {

namespace {
/// The position follows.
constexpr std::string_view kWithheldLabel = "withheld-at-";
}  // namespace

bool is_withheld_label(std::string_view label) noexcept {
  return label.starts_with(kWithheldLabel);
}

Status withhold_data(zone::Draft& draft, dns::NameView apex, std::uint64_t position) {
  zone::DataLimits limits = zone::DataLimits::none();
  limits.snapshots = UINT64_MAX;
  // Without room, or with too many snapshots, the zone has to do with what the journal has.
  const auto kept = draft.take_snapshot(apex, fmt::format("{}{}", kWithheldLabel, position),
                                        unix_seconds(), limits);
  if (!kept && kept.error().code != Errc::kFull && kept.error().code != Errc::kExists) return kept;
  return draft.unload_zone(apex);
}

std::optional<WithheldData> withheld_data(const zone::ZoneView& zone) {
  if (!zone || zone.loaded() || !zone.has_snapshots()) return std::nullopt;
  for (const zone::ZoneSnapshot& one : zone::snapshots_of(zone)) {
    if (!is_withheld_label(one.label) || one.archive == 0) continue;
    WithheldData found{zone::data_of(zone, one), 0};
    const std::string_view digits = std::string_view(one.label).substr(kWithheldLabel.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), found.position);
    if (found.data && found.data.loaded()) return found;
  }
  return std::nullopt;
}

Status drop_withheld_data(zone::Draft& draft, dns::NameView apex) {
  const zone::ZoneView zone = draft.view().zone_at(apex);
  if (!zone || !zone.has_snapshots()) return {};
  for (const zone::ZoneSnapshot& one : zone::snapshots_of(zone))
    if (is_withheld_label(one.label))
      if (auto dropped = draft.drop_snapshot(apex, one.label, zone::DataLimits::none()); !dropped)
        return dropped;
  return {};
}

}  // namespace pando::manager
