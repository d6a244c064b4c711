#include "zone/build/broken_rules.h"

#include <deque>
#include <map>

#include "zone/build/name_rules.h"

namespace pando::zone {

namespace {

/// Rules about records that share a name forbid something beside these, or a second one of them.
bool stands_alone(dns::RRType type) {
  return type == dns::RRType::kCNAME || type == dns::RRType::kDNAME || type == dns::RRType::kSOA;
}

/// The records of one name as they come, as far as rules are about them.
class NameSoFar {
 public:
  explicit NameSoFar(ByteView labels) : octets_{Bytes(labels.begin(), labels.end())} {
    name_.labels = octets_.front();
  }

  Status add(dns::RRType type, ByteView rdata, dns::NameView apex) {
    RRsetDraft& rrset = name_.at(type);
    if (!stands_alone(type) && !rrset.rdatas.empty()) return {};  // there is one: that is enough
    rrset.rdatas.push_back(octets_.emplace_back(rdata.begin(), rdata.end()));
    normalise(rrset);
    return check_together(name_, apex);
  }

 private:
  std::deque<Bytes> octets_;  // what name_ points to
  NameDraft name_;
};

struct CanonicalLess {
  bool operator()(const dns::Name& a, const dns::Name& b) const noexcept {
    return dns::compare_canonical(a, b) < 0;
  }
};

using Names = std::map<dns::Name, NameSoFar, CanonicalLess>;

Names names_with_rules(const std::string& path, const dns::ScanOptions& options) {
  Names names;
  dns::scan_zone_file(path, options, [&](const dns::ScannedRecord& record) -> Status {
    if (stands_alone(record.type) && record.owner.is_at_or_below(options.origin))
      names.try_emplace(dns::Name(record.owner), relative_labels(record.owner, options.origin));
    return {};
  });
  return names;
}

}  // namespace

std::vector<std::string> find_broken_rules(const std::string& path,
                                           const dns::ScanOptions& options) {
  Names names = names_with_rules(path, options);
  return dns::scan_zone_file(
             path, options,
             [&](const dns::ScannedRecord& record) -> Status {
               const auto found = names.find(dns::Name(record.owner));
               const Placed placed = place(record.type, record.rdata);
               if (found == names.end() || placed.is_signature || placed.set == dns::RRType::kNSEC3)
                 return {};
               return found->second.add(placed.set, placed.octets, options.origin);
             })
      .errors;
}

}  // namespace pando::zone
