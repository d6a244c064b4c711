#include "manager/catalog/catalog_zone.h"

#include <array>
#include <set>
#include <string_view>

#include "dns/folded_key.h"

namespace pando::manager {

namespace {

using dns::RRType;

/// The labels of a record's owner below the apex, the last one first, in lower case.
struct Labels {
  /// Property, member and "zones"; a fourth label shows that the name is too long.
  static constexpr std::size_t kMaxLabels = 4;

  explicit Labels(ByteView owner) {
    std::array<std::string_view, dns::kMaxLabels> found;
    std::size_t all = 0;
    for (std::size_t at = 0; at < owner.size(); at += owner[at] + std::size_t{1})
      found[all++] = {reinterpret_cast<const char*>(owner.data()) + at + 1, owner[at]};
    for (; count < kMaxLabels && count < all; ++count) {
      for (const char c : found[all - 1 - count])
        label[count] += static_cast<char>(dns::kFoldCase[static_cast<std::uint8_t>(c)]);
    }
  }
  std::array<std::string, kMaxLabels> label;
  std::size_t count = 0;
};

/// The name that is all of an RRset of PTR; several are a fault.
Result<std::optional<dns::Name>> only_name(const zone::RecordView& record) {
  const zone::RRsetView set = record.find(RRType::kPTR);
  if (set.count() == 0) return std::nullopt;
  if (set.count() > 1) return fail(Errc::kInvalid, "has {} PTR records", set.count());
  const ByteView rdata = set.first_rdata();
  if (!dns::is_wire_name(rdata)) return fail(Errc::kCorrupt, "is damaged");
  return dns::Name(dns::NameView(rdata.data(), rdata.size()));
}

/// The texts of an RRset of TXT; the strings of a record are one text.
std::vector<std::string> texts(const zone::RecordView& record) {
  std::vector<std::string> found;
  record.find(RRType::kTXT).for_each_rdata([&](ByteView rdata) {
    std::string text;
    for (std::size_t at = 0; at < rdata.size() && at + rdata[at] < rdata.size();
         at += rdata[at] + std::size_t{1})
      text.append(reinterpret_cast<const char*>(rdata.data()) + at + 1, rdata[at]);
    found.push_back(std::move(text));
  });
  return found;
}

class CatalogReader {
 public:
  explicit CatalogReader(const zone::ZoneView& catalog) : catalog_(catalog) {}

  Result<std::vector<CatalogMember>> read() {
    zone::ZoneView::Cursor cursor = catalog_.begin();
    while (const zone::RecordView record = cursor.next())
      if (auto taken = take(record); !taken)
        return fail(taken.error().code, "{} {}", to_text(catalog_.owner_of(record)),
                    taken.error().text);
    if (!has_version_) return fail(Errc::kInvalid, "it has no version: TXT \"2\" at 'version'");
    return std::move(members_);
  }

 private:
  /// Properties follow their member in the canonical order.
  Status take(const zone::RecordView& record) {
    const Labels owner(record.relative_owner());
    if (owner.count == 1 && owner.label[0] == "version") return take_version(record);
    if (owner.count < 2 || owner.count > 3 || owner.label[0] != "zones") return {};
    if (owner.count == 2) return take_member(record, owner.label[1]);
    if (members_.empty() || members_.back().id != owner.label[1]) return {};
    if (owner.label[2] == "group") members_.back().groups = texts(record);
    if (owner.label[2] != "coo") return {};
    auto name = only_name(record);
    if (!name) return pass(name);
    members_.back().new_catalog = std::move(*name);
    return {};
  }

  Status take_version(const zone::RecordView& record) {
    const auto found = texts(record);
    if (found.empty()) return {};
    if (found.size() > 1) return fail(Errc::kInvalid, "has {} TXT records", found.size());
    if (found[0] != "2") return fail(Errc::kInvalid, "is '{}', not 2", found[0]);
    has_version_ = true;
    return {};
  }

  Status take_member(const zone::RecordView& record, const std::string& id) {
    auto name = only_name(record);
    if (!name) return pass(name);
    if (!*name) return {};
    if (!zones_.insert(dns::folded_key(**name)).second)
      return fail(Errc::kInvalid, "has zone {}, which another member is already", to_text(**name));
    members_.push_back({**name, id});
    return {};
  }

  const zone::ZoneView& catalog_;
  std::vector<CatalogMember> members_;
  std::set<std::string> zones_;
  bool has_version_ = false;
};

}  // namespace

Result<std::vector<CatalogMember>> read_catalog(const zone::ZoneView& catalog) {
  return CatalogReader(catalog).read();
}

}  // namespace pando::manager
