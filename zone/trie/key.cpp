#include "zone/trie/key.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pando::zone {

namespace {

/// Symbols of one octet; second is kLabelEnd when one symbol is enough.
struct OctetSymbols {
  std::uint8_t first;
  std::uint8_t second;
};

constexpr bool is_plain(unsigned octet) {
  return octet == '*' || octet == '-' || octet == '_' || (octet >= '0' && octet <= '9') ||
         (octet >= 'a' && octet <= 'z');
}

/// Assigns symbols in the order of the octets. Plain octets get the next symbol; runs of others
/// share an escape symbol as long as its 47 values last.
constexpr std::array<OctetSymbols, 256> make_table() {
  std::array<OctetSymbols, 256> table{};
  std::uint8_t next = kLabelEnd + 1;
  std::uint8_t escape = 0;
  std::uint8_t value = 0;
  for (unsigned octet = 0; octet < 256; ++octet) {
    if (octet >= 'A' && octet <= 'Z') continue;
    if (is_plain(octet)) {
      table[octet] = {next++, kLabelEnd};
      escape = 0;
      continue;
    }
    if (escape == 0 || value == kSymbols - 1) {
      escape = next++;
      value = 0;
    }
    table[octet] = {escape, ++value};
  }
  for (unsigned octet = 'A'; octet <= 'Z'; ++octet) table[octet] = table[octet + ('a' - 'A')];
  return table;
}

constexpr auto kTable = make_table();
static_assert(sizeof(OctetSymbols) == 2);
static_assert(kTable[255].first < kSymbols,
              "symbols above 47 would fall outside a branch's bitmap");

/// Positions of labels, first label first.
struct LabelStarts {
  std::array<std::uint8_t, dns::kMaxLabels + 1> at;
  std::size_t count = 0;

  explicit LabelStarts(ByteView labels) noexcept {
    for (std::size_t i = 0; i < labels.size() && count <= dns::kMaxLabels;
         i += labels[i] + std::size_t{1})
      at[count++] = static_cast<std::uint8_t>(i);
  }
};

/// Writes the symbols of a label with its end; the position after them.
[[gnu::always_inline]] inline std::uint8_t* put_label(const std::uint8_t* label,
                                                      std::uint8_t* out) noexcept {
  const std::uint8_t* const end = label + 1 + *label;
  for (const std::uint8_t* octet = label + 1; octet < end; ++octet) {
    // Both symbols are written, and the second is perhaps overwritten: no branch can be
    // mispredicted.
    const OctetSymbols symbols = kTable[*octet];
    std::memcpy(out, &symbols, sizeof symbols);
    out += symbols.second == kLabelEnd ? 1 : 2;
  }
  *out++ = kLabelEnd;
  return out;
}

/// Sixteen octets of a label at once, in one register.
using Octets = std::uint8_t __attribute__((vector_size(16)));

/// Symbols of the octets after `label`'s length octet, and which of them (all bits set) have one
/// symbol each: letters, digits, '-' and '_'. Sixteen octets are read, however long the label is.
struct PlainSymbols {
  Octets symbols;
  Octets plain;
  Octets behind;  ///< after the label

  [[gnu::always_inline]] explicit PlainSymbols(const std::uint8_t* label) noexcept {
    constexpr Octets kPlaces = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Octets octets;
    std::memcpy(&octets, label + 1, sizeof octets);
    const Octets letter = octets | 0x20;
    const auto is_letter = Octets(Octets(letter - 'a') < 26);
    const auto is_digit = Octets(Octets(octets - '0') < 10);
    const auto is_hyphen = Octets(octets == '-');
    const auto is_low_line = Octets(octets == '_');
    symbols = (is_letter & Octets(letter - ('a' - kTable['a'].first))) |
              (is_digit & Octets(octets - ('0' - kTable['0'].first))) |
              (is_hyphen & kTable['-'].first) | (is_low_line & kTable['_'].first);
    plain = is_letter | is_digit | is_hyphen | is_low_line;
    behind = Octets(kPlaces >= *label);
  }
};

/// Number of octets before the first that is not all ones.
[[gnu::always_inline]] inline std::size_t leading_ones(Octets octets) noexcept {
  std::uint64_t halves[2];
  std::memcpy(halves, &octets, sizeof octets);
  if (~halves[0] != 0) return static_cast<std::size_t>(std::countr_one(halves[0])) / 8;
  return 8 + static_cast<std::size_t>(std::countr_one(halves[1])) / 8;
}

/// put_label() for a label of up to 16 octets that all have one symbol; null for others. Sixteen
/// octets after the length octet are read.
[[gnu::always_inline]] inline std::uint8_t* put_plain_label(const std::uint8_t* label,
                                                            std::uint8_t* out) noexcept {
  const PlainSymbols found(label);
  const bool all_plain = leading_ones(found.plain | found.behind) == sizeof(Octets);
  if (!all_plain || *label > sizeof(Octets)) return nullptr;
  std::memcpy(out, &found.symbols, sizeof found.symbols);
  out += *label;
  *out++ = kLabelEnd;
  return out;
}

}  // namespace

void TrieKey::assign(ByteView labels) noexcept {
  const LabelStarts starts(labels);
  std::uint8_t* out = symbols_.data();
  for (std::size_t i = starts.count; i-- > 0;) out = put_label(labels.data() + starts.at[i], out);
  *out = kKeyEnd;
  length_ = static_cast<std::uint16_t>(out - symbols_.data());
}

NameKey::NameKey(const dns::Name& name) noexcept : name_(name) {
  const ByteView labels = name_.bytes().first(name_.size() - 1);
  const LabelStarts starts(labels);
  // A Name has room for the longest name: octets after a short one can be read.
  constexpr std::size_t kLastStart = dns::kMaxNameOctets - 1 - sizeof(Octets);
  std::uint8_t* const begin = key_.symbols_.data();
  std::uint8_t* out = begin;
  ends_[0] = 0;
  for (std::size_t i = starts.count; i-- > 0;) {
    const std::uint8_t* const label = labels.data() + starts.at[i];
    std::uint8_t* const behind = starts.at[i] <= kLastStart ? put_plain_label(label, out) : nullptr;
    out = behind != nullptr ? behind : put_label(label, out);
    ends_[++label_count_] = static_cast<std::uint16_t>(out - begin);
  }
  *out = kKeyEnd;
  key_.length_ = static_cast<std::uint16_t>(out - begin);
}

KeyView::Parting KeyView::part_from(ByteView labels, std::size_t readable) const noexcept {
  const LabelStarts starts(labels);
  // kKeyEnd differs from every symbol, so that no comparison continues after the key.
  const std::uint8_t* symbol = symbols_;
  const auto parting = [&](std::uint8_t next) -> Parting {
    return {static_cast<std::size_t>(symbol - symbols_), false, next};
  };
  for (std::size_t i = starts.count; i-- > 0;) {
    const std::uint8_t* label = labels.data() + starts.at[i];
    const std::uint8_t* octet = label;
    const std::uint8_t* const end = label + 1 + *label;
    if (starts.at[i] + 1 + sizeof(Octets) <= readable) {
      const PlainSymbols found(label);
      Octets wanted;
      std::memcpy(&wanted, symbol, sizeof wanted);
      const Octets same = Octets(found.symbols == wanted) & found.plain;
      const std::size_t count = std::min<std::size_t>(leading_ones(same), *label);
      symbol += count;
      octet += count;
    }
    while (++octet < end) {
      const OctetSymbols wanted = kTable[*octet];
      if (*symbol != wanted.first) return parting(wanted.first);
      ++symbol;
      if (wanted.second == kLabelEnd) continue;
      if (*symbol != wanted.second) return parting(wanted.second);
      ++symbol;
    }
    if (*symbol != kLabelEnd) return parting(kLabelEnd);
    ++symbol;
  }
  return {static_cast<std::size_t>(symbol - symbols_), true, kLabelEnd};
}

std::size_t KeyView::labels_within(std::size_t symbols) const noexcept {
  static_assert(kLabelEnd == 0 && kSymbols < 0x80, "eight symbols are counted at once");
  constexpr std::uint64_t kSeven = 0x7F7F7F7F7F7F7F7FU;
  const std::size_t end = std::min<std::size_t>(symbols, length_);
  std::size_t count = 0;
  std::size_t at = 0;
  for (; at + 8 <= end; at += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, symbols_ + at, sizeof eight);
    // Bit 7 of an octet of the sum is set where the symbol is not 0.
    count += static_cast<std::size_t>(std::popcount(~(eight + kSeven) & ~kSeven));
  }
  for (; at < end; ++at) count += symbols_[at] == kLabelEnd ? 1 : 0;
  return count;
}

std::size_t TrieKey::common_prefix(const TrieKey& other) const noexcept {
  const std::size_t shorter = std::min(length_, other.length_);
  std::size_t at = 0;
  while (at + 8 <= shorter) {
    std::uint64_t a;
    std::uint64_t b;
    std::memcpy(&a, symbols_.data() + at, 8);
    std::memcpy(&b, other.symbols_.data() + at, 8);
    if (a != b) return at + static_cast<std::size_t>(__builtin_ctzll(a ^ b)) / 8;
    at += 8;
  }
  while (at < shorter && symbols_[at] == other.symbols_[at]) ++at;
  return at;
}

int TrieKey::compare(const TrieKey& other) const noexcept {
  const std::size_t shorter = std::min(length_, other.length_);
  const int order = std::memcmp(symbols_.data(), other.symbols_.data(), shorter);
  return order != 0 ? order : static_cast<int>(length_) - static_cast<int>(other.length_);
}

}  // namespace pando::zone
