#include "manager/support/withheld_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/unix_time.h"
#include "ipc/log.h"
#include "zone/history/zone_snapshot.h"

namespace pando::manager {

namespace {
/// The position follows.
constexpr std::string_view kWithheldLabel = "withheld-at-";

/// Ends one of the zone's snapshots if it has as many as it may: a lost one, else the oldest.
/// Acknowledged updates may be in the withheld data alone.
Status give_place(zone::Draft& draft, dns::NameView apex) {
  const auto all = zone::snapshots_of(draft.view().zone_at(apex));
  if (all.size() < zone::kMaxSnapshots) return {};
  const auto lost =
      std::find_if(all.begin(), all.end(), [](const auto& one) { return !one.held(); });
  const zone::ZoneSnapshot& gone = lost == all.end() ? all.front() : *lost;
  log::error("zone_snapshot_lost", "zone", to_text(apex), "snapshot", gone.label, "serial",
             gone.serial.value, "reason", "data that wait for the journal take its place");
  return draft.drop_snapshot(apex, gone.label, zone::DataLimits::none());
}
}  // namespace

bool is_withheld_label(std::string_view label) noexcept {
  return label.starts_with(kWithheldLabel);
}

Status withhold_data(zone::Draft& draft, dns::NameView apex, std::uint64_t position) {
  zone::DataLimits limits = zone::DataLimits::none();
  limits.snapshots = UINT64_MAX;
  Status kept = give_place(draft, apex);
  if (kept)
    kept = draft.take_snapshot(apex, fmt::format("{}{}", kWithheldLabel, position), unix_seconds(),
                               limits);
  const bool is_low_space = !kept && kept.error().code == Errc::kFull;
  if (!kept && !is_low_space && kept.error().code != Errc::kExists) return kept;
  if (is_low_space)
    log::error("zone_data_not_withheld", "zone", to_text(apex), "journal_position", position,
               "reason", kept.error().text);
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
