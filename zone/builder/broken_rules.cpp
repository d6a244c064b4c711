#include "zone/builder/broken_rules.h"

#include <deque>
#include <map>

#include "zone/draft/name_rules.h"

namespace pando::zone {

namespace {

/// Types for which the rules on one name forbid other records beside them, or a second record.
bool stands_alone(dns::RRType type) {
  return type == dns::RRType::kCNAME || type == dns::RRType::kDNAME || type == dns::RRType::kSOA;
}

/// The records of one name so far, as far as the rules concern them.
class NameSoFar {
 public:
  explicit NameSoFar(ByteView labels) : octets_{Bytes(labels.begin(), labels.end())} {
    name_.labels = octets_.front();
  }

  Status add(dns::RRType type, ByteView rdata, dns::NameView apex) {
    RRsetDraft& rrset = name_.at(type);
    if (!stands_alone(type) && !rrset.rdatas.empty())
      return {};  // one record of the type is enough
    rrset.rdatas.push_back(octets_.emplace_back(rdata.begin(), rdata.end()));
    normalise(rrset);
    return check_together(name_, apex);
  }

 private:
  std::deque<Bytes> octets_;  // the bytes that name_ points to
  NameDraft name_;
};

using Names = std::map<dns::Name, NameSoFar, dns::CanonicalLess>;

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
