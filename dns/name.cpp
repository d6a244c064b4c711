#include "dns/name.h"

#include <algorithm>

#include "dns/text.h"

namespace pando::dns {

namespace {

constexpr std::array<std::uint8_t, 256> make_fold_table() {
  std::array<std::uint8_t, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<std::uint8_t>(i >= 'A' && i <= 'Z' ? i + ('a' - 'A') : i);
  return table;
}

/// Positions of a name's labels, first label first; at most kMaxLabels of them.
struct LabelOffsets {
  std::array<std::uint8_t, kMaxLabels + 1> at;
  std::size_t count = 0;

  explicit LabelOffsets(NameView name) noexcept {
    for (std::size_t i = 0; name.data()[i] != 0; i += name.data()[i] + 1U)
      at[count++] = static_cast<std::uint8_t>(i);
  }
};

int compare_labels(const std::uint8_t* a, const std::uint8_t* b) noexcept {
  const std::size_t shorter = std::min(a[0], b[0]);
  for (std::size_t i = 1; i <= shorter; ++i) {
    const int difference = kFoldCase[a[i]] - kFoldCase[b[i]];
    if (difference != 0) return difference;
  }
  return a[0] - b[0];
}

tl::unexpected<Error> name_too_long(std::string_view text) {
  return fail(Errc::kInvalid, "name above 255 octets: {}", quote_for_message(text));
}

/// Writes the length octet of the label in `out[length_at + 1, size)`.
Status end_label(std::string_view text, std::uint8_t* out, std::size_t length_at,
                 std::size_t size) {
  const std::size_t length = size - length_at - 1;
  if (length == 0) return fail(Errc::kInvalid, "empty label in name {}", quote_for_message(text));
  if (length > kMaxLabelOctets)
    return fail(Errc::kInvalid, "label above 63 octets in name {}", quote_for_message(text));
  out[length_at] = static_cast<std::uint8_t>(length);
  return {};
}

}  // namespace

const std::array<std::uint8_t, 256> kFoldCase = make_fold_table();

bool NameView::is_at_or_below(NameView other) const noexcept {
  if (size_ < other.size()) return false;
  const std::size_t start = size_ - other.size();
  std::size_t i = 0;
  while (i < start) i += data_[i] + 1U;  // the suffix must begin at a label boundary
  return i == start && NameView(data_ + start, other.size()) == other;
}

bool operator==(NameView a, NameView b) noexcept {
  return a.size() == b.size() && same_octets<NameCase::kIgnored>(a.data(), b.data(), a.size());
}

int compare_canonical(NameView a, NameView b) noexcept {
  const LabelOffsets labels_a(a);
  const LabelOffsets labels_b(b);
  const std::size_t shared = std::min(labels_a.count, labels_b.count);
  for (std::size_t i = 1; i <= shared; ++i) {
    const int difference = compare_labels(a.data() + labels_a.at[labels_a.count - i],
                                          b.data() + labels_b.at[labels_b.count - i]);
    if (difference != 0) return difference;
  }
  return static_cast<int>(labels_a.count) - static_cast<int>(labels_b.count);
}

std::uint64_t hash_name(NameView name) noexcept { return hash_octets(name.data(), name.size()); }

std::string to_text(NameView name) {
  std::string text;
  text.reserve(name.size() + 8);
  append_labels_text(text, name.bytes());
  return text;
}

Result<std::size_t> name_from_text(std::string_view text, NameView origin,
                                   std::uint8_t out[kMaxNameOctets]) {
  if (text.empty()) return fail(Errc::kInvalid, "empty name");
  if (text == "@" || text == ".") {
    const NameView name = text == "@" ? origin : NameView();
    std::memcpy(out, name.data(), name.size());
    return name.size();
  }
  std::size_t length_at = 0;
  std::size_t size = 1;
  for (std::size_t at = 0; at < text.size();) {
    if (size == kMaxNameOctets) return name_too_long(text);
    if (text[at] == '.') {
      if (auto status = end_label(text, out, length_at, size); !status) return pass(status);
      length_at = size++;
      ++at;
      continue;
    }
    const int octet = take_octet(text, at);
    if (octet < 0) return fail(Errc::kInvalid, "bad escape in name {}", quote_for_message(text));
    out[size++] = static_cast<std::uint8_t>(octet);
  }
  if (size == length_at + 1) {  // after a final dot
    out[length_at] = 0;
    return size;
  }
  if (auto status = end_label(text, out, length_at, size); !status) return pass(status);
  if (size + origin.size() > kMaxNameOctets) return name_too_long(text);
  std::memcpy(out + size, origin.data(), origin.size());
  return size + origin.size();
}

Result<Name> Name::from_text(std::string_view text, NameView origin) {
  Name name;
  auto size = name_from_text(text, origin, name.bytes_.data());
  if (!size) return pass(size);
  name.size_ = static_cast<std::uint8_t>(*size);
  return name;
}

Result<Name> Name::from_wire(ByteView wire) {
  const std::size_t length = wire_name_length(wire);
  if (length == 0 || length != wire.size()) return fail(Errc::kInvalid, "not a wire-format name");
  return Name(NameView(wire.data(), length));
}

Result<Name> Name::join(ByteView prefix, NameView suffix) {
  if (suffix.size() == 0) return fail(Errc::kInvalid, "name without a root label");
  if (prefix.size() + suffix.size() > kMaxNameOctets)
    return fail(Errc::kInvalid, "name above 255 octets");
  Name name;
  // An empty prefix may have a null address, which memcpy must not get.
  if (!prefix.empty()) std::memcpy(name.bytes_.data(), prefix.data(), prefix.size());
  std::memcpy(name.bytes_.data() + prefix.size(), suffix.data(), suffix.size());
  name.size_ = static_cast<std::uint8_t>(prefix.size() + suffix.size());
  return name;
}

Name Name::folded() const noexcept {
  Name name;
  name.size_ = size_;
  for (std::size_t i = 0; i < size_; ++i) name.bytes_[i] = kFoldCase[bytes_[i]];
  return name;
}

}  // namespace pando::dns
