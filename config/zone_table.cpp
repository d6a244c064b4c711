#include "config/zone_table.h"

#include <limits>

namespace pando::config {

namespace {

constexpr std::size_t kFirstIndexSlots = 16;

}  // namespace

std::uint32_t ZoneTable::add_options(ZoneOptions options) {
  options_.push_back(std::move(options));
  return static_cast<std::uint32_t>(options_.size() - 1);
}

Status ZoneTable::add(dns::NameView name, std::string_view file, std::uint32_t options) {
  if (file.size() > std::numeric_limits<std::uint16_t>::max())
    return fail(Errc::kInvalid, "file name of {} octets", file.size());
  if (entries_.size() >= std::numeric_limits<std::uint32_t>::max() - 1)
    return fail(Errc::kFull, "more than {} zones", entries_.size());
  if (2 * (entries_.size() + 1) > index_.size()) grow_index();
  const std::size_t slot = slot_of(name);
  if (index_[slot] != 0)
    return fail(Errc::kExists, "zone {} is configured twice", dns::to_text(name));
  entries_.push_back({text_.size(), options, static_cast<std::uint16_t>(file.size()),
                      static_cast<std::uint8_t>(name.size())});
  append(text_, name.bytes());
  text_.insert(text_.end(), file.begin(), file.end());
  index_[slot] = static_cast<std::uint32_t>(entries_.size());
  return {};
}

ZoneRef ZoneTable::operator[](std::size_t index) const noexcept {
  const Entry& entry = entries_[index];
  const auto* file =
      reinterpret_cast<const char*>(text_.data()) + entry.text_at + entry.name_octets;
  return {name_of(entry), {file, entry.file_octets}, &options_[entry.options]};
}

std::optional<std::size_t> ZoneTable::find(dns::NameView name) const noexcept {
  if (index_.empty()) return std::nullopt;
  const std::uint32_t number = index_[slot_of(name)];
  if (number == 0) return std::nullopt;
  return number - 1;
}

std::string ZoneTable::path(std::size_t index) const {
  const std::string_view file = (*this)[index].file;
  if (file.empty() || file.front() == '/') return std::string(file);
  return fmt::format("{}/{}", folder_, file);
}

dns::NameView ZoneTable::name_of(const Entry& entry) const noexcept {
  return {text_.data() + entry.text_at, entry.name_octets};
}

/// The index slot that holds `name`, or the free one where it belongs.
std::size_t ZoneTable::slot_of(dns::NameView name) const noexcept {
  const std::size_t mask = index_.size() - 1;
  // FNV's low bits depend on the low bits of the octets only; the fold brings the others in.
  const std::uint64_t hash = dns::hash_name(name);
  std::size_t slot = (hash ^ (hash >> 29)) & mask;
  while (index_[slot] != 0 && !(name_of(entries_[index_[slot] - 1]) == name))
    slot = (slot + 1) & mask;
  return slot;
}

void ZoneTable::grow_index() {
  index_.assign(index_.empty() ? kFirstIndexSlots : 2 * index_.size(), 0);
  for (std::size_t i = 0; i < entries_.size(); ++i)
    index_[slot_of(name_of(entries_[i]))] = static_cast<std::uint32_t>(i + 1);
}

}  // namespace pando::config
