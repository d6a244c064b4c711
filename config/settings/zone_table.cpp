#include "config/settings/zone_table.h"

#include <algorithm>
#include <limits>

namespace pando::config {

namespace {

constexpr std::size_t kFirstIndexSlots = 16;

/// Options that share_options() compares.
constexpr std::size_t kMaxCompared = 64;

/// Low bits of a slot for the entry number; the other bits hold the tag.
constexpr int kNumberBits = 24;
constexpr std::uint32_t kNumber = (1U << kNumberBits) - 1;

}  // namespace

std::uint32_t ZoneTable::add_options(ZoneOptions options) {
  options_.push_back(std::move(options));
  return static_cast<std::uint32_t>(options_.size() - 1);
}

std::uint32_t ZoneTable::share_options(ZoneOptions options) {
  const std::size_t first = options_.size() - std::min(options_.size(), kMaxCompared);
  for (std::size_t i = options_.size(); i > first; --i)
    if (options_[i - 1] == options) return static_cast<std::uint32_t>(i - 1);
  return add_options(std::move(options));
}

std::vector<std::uint32_t> ZoneTable::drop_unused_options(
    const std::vector<std::uint32_t>& kept) {
  std::vector<bool> used(options_.size());
  for (const std::uint32_t number : kept) used[number] = true;
  for (const Entry& entry : entries_) used[entry.options] = true;
  std::vector<std::uint32_t> numbers(options_.size());
  std::vector<ZoneOptions> left;
  for (std::size_t i = 0; i < options_.size(); ++i) {
    numbers[i] = static_cast<std::uint32_t>(left.size());
    if (used[i]) left.push_back(std::move(options_[i]));
  }
  options_ = std::move(left);
  for (Entry& entry : entries_) entry.options = numbers[entry.options];
  return numbers;
}

Status ZoneTable::add(dns::NameView name, std::string_view file, std::uint32_t options,
                      bool added) {
  if (file.size() > std::numeric_limits<std::uint16_t>::max())
    return fail(Errc::kInvalid, "file name of {} bytes", file.size());
  if (entries_.size() >= kNumber) return fail(Errc::kFull, "more than {} zones", entries_.size());
  if (2 * (entries_.size() + 1) > index_.size()) grow_index();
  const Place place = place_of(name);
  if (index_[place.slot] != 0)
    return fail(Errc::kExists, "zone {} is configured twice", dns::to_text(name));
  entries_.push_back({text_.size(), options, static_cast<std::uint16_t>(file.size()),
                      static_cast<std::uint8_t>(name.size()), added});
  append(text_, name.bytes());
  text_.insert(text_.end(), file.begin(), file.end());
  index_[place.slot] = place.tag | static_cast<std::uint32_t>(entries_.size());
  return {};
}

ZoneRef ZoneTable::operator[](std::size_t index) const noexcept {
  const Entry& entry = entries_[index];
  const auto* file =
      reinterpret_cast<const char*>(text_.data()) + entry.text_at + entry.name_octets;
  return {name_of(entry), {file, entry.file_bytes}, &options_[entry.options], entry.added};
}

std::optional<std::size_t> ZoneTable::find(dns::NameView name) const noexcept {
  if (index_.empty()) return std::nullopt;
  const std::uint32_t number = index_[place_of(name).slot] & kNumber;
  if (number == 0) return std::nullopt;
  return number - 1;
}

const ZoneOptions* ZoneTable::options_of(dns::NameView name) const noexcept {
  const auto index = find(name);
  return index ? (*this)[*index].options : nullptr;
}

std::string ZoneTable::path(std::size_t index) const {
  const std::string_view file = (*this)[index].file;
  if (file.empty() || file.front() == '/') return std::string(file);
  return fmt::format("{}/{}", folder_, file);
}

dns::NameView ZoneTable::name_of(const Entry& entry) const noexcept {
  return {text_.data() + entry.text_at, entry.name_octets};
}

ZoneTable::Place ZoneTable::place_of(dns::NameView name) const noexcept {
  const std::size_t mask = index_.size() - 1;
  // An octet of a short name may change the upper bits alone; the fold mixes them in.
  const std::uint64_t hash = dns::hash_name(name);
  Place place{(hash ^ (hash >> 29)) & mask, static_cast<std::uint32_t>(hash >> 32) & ~kNumber};
  const auto is_here = [&](std::uint32_t found) {
    return (found & ~kNumber) == place.tag && name_of(entries_[(found & kNumber) - 1]) == name;
  };
  while (index_[place.slot] != 0 && !is_here(index_[place.slot]))
    place.slot = (place.slot + 1) & mask;
  return place;
}

ZoneTable ZoneTable::filtered(const std::function<bool(const ZoneRef&)>& keep) const {
  ZoneTable table(folder_);
  table.options_ = options_;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ZoneRef zone = (*this)[i];
    if (!keep(zone)) continue;
    // Each name was in this table once, so it is added.
    static_cast<void>(table.add(zone.name, zone.file, entries_[i].options, zone.added));
  }
  return table;
}

void ZoneTable::grow_index() {
  index_.assign(index_.empty() ? kFirstIndexSlots : 2 * index_.size(), 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Place place = place_of(name_of(entries_[i]));
    index_[place.slot] = place.tag | static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace pando::config
