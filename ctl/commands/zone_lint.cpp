#include "ctl/commands/zone_lint.h"

#include <fmt/format.h>

#include "base/progress.h"
#include "dns/dnssec/denial_fields.h"
#include "dns/rdata/rdata.h"

namespace pando::ctl {

using dns::RRType;
using zone::Match;
using zone::RecordView;
using zone::RRsetView;

namespace {

bool has_address(const RecordView& record) {
  return record && (record.find(RRType::kA) || record.find(RRType::kAAAA));
}

class Linter {
 public:
  explicit Linter(const zone::ZoneView& zone) : zone_(zone) {}

  std::vector<std::string> run() {
    ProgressCount count(Progress::Phase::kChecking, zone_.name_count());
    auto cursor = zone_.begin();
    while (lines_.size() < kMaxLintLines) {
      const RecordView record = cursor.next();
      if (!record) break;
      count.add();
      check(record);
    }
    return std::move(lines_);
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    if (lines_.size() < kMaxLintLines)
      lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void check(const RecordView& record) {
    const dns::Name owner = zone_.owner_of(record);
    look_at_chain(owner, record);
    const Match place = zone_.lookup(owner);
    if (place.barrier) return look_below(place, owner, record);
    record.for_each_rrset([&](const RRsetView& set) {
      set.for_each_rdata([&](ByteView rdata) { check(owner, set.type(), rdata); });
    });
  }

  /// RFC 5155 §3.1.7: the next hash has the length of the hash.
  void look_at_chain(const dns::Name& owner, const RecordView& record) {
    if (owner == zone_.apex() && zone_.denial() == zone::Denial::kNsec3)
      if (const auto doubt = dns::doubt_about_iterations(zone_.nsec3_parameters().iterations);
          !doubt.empty())
        say("{} {}", dns::to_text(owner), doubt);
    record.find(RRType::kNSEC3).for_each_rdata([&](ByteView rdata) {
      const auto fields = dns::parse_nsec3(rdata);
      if (fields && !fields->has_next())
        say("{} NSEC3 has a next hash of {} octets instead of {}: no proof can use the record",
            dns::to_text(owner), fields->next.size(), dns::kNsec3HashOctets);
    });
  }

  /// RFC 2136 §7.18, RFC 6672 §2.4: data below a cut or a DNAME is never answered; only glue has a
  /// use.
  void look_below(const Match& place, const dns::Name& owner, const RecordView& record) {
    const bool dname = !place.barrier.has_ns();
    record.for_each_rrset([&](const RRsetView& set) {
      const bool glue = set.type() == RRType::kA || set.type() == RRType::kAAAA;
      // Hashed owners lie in a space of their own (RFC 5155 §3), below the DNAME of an apex too.
      if ((dname || !glue) && set.type() != RRType::kNSEC3)
        say("{} {} is hidden by the {} at {}", dns::to_text(owner), dns::to_text(set.type()),
            dname ? "DNAME" : "delegation", dns::to_text(zone_.owner_of(place.barrier)));
    });
  }

  void check(const dns::Name& owner, RRType type, ByteView rdata) {
    dns::NameView target;
    if (type == RRType::kCNAME) {
      // RFC 1035 §3.3.1: the RDATA is just a name
      target = dns::NameView(rdata.data(), rdata.size());
    } else if ((type != RRType::kNS && type != RRType::kMX && type != RRType::kSRV) ||
               !dns::additional_name(type, rdata, target)) {
      return;
    }
    if (!target.is_at_or_below(zone_.apex())) return;
    const Match match = zone_.lookup(target);
    if (match.barrier)
      look_at_glue(owner, type, target, match);
    else
      look_at_target(owner, type, target, match);
  }

  /// Only a name server inside the zone that it serves needs glue (RFC 1034 §4.2.1).
  void look_at_glue(const dns::Name& owner, RRType type, dns::NameView target, const Match& match) {
    if (type != RRType::kNS || !target.is_at_or_below(owner)) return;
    if (!match.barrier.has_ns() || has_address(match.exact)) return;
    say("{} NS {} needs glue: the address of the server", dns::to_text(owner),
        dns::to_text(target));
  }

  void look_at_target(const dns::Name& owner, RRType type, dns::NameView target,
                      const Match& match) {
    const RecordView found =
        match.exact || match.empty_non_terminal
            ? match.exact
            : zone_.wildcard_below(target.ancestor(target.label_count() - match.encloser_labels));
    if (type == RRType::kCNAME) {
      if (!found) say("{} CNAME {} has no records", dns::to_text(owner), dns::to_text(target));
      return;
    }
    if (found && found.has_cname())  // RFC 2181 §10.3
      say("{} {} {} is an alias", dns::to_text(owner), dns::to_text(type), dns::to_text(target));
    else if (!has_address(found))
      say("{} {} {} has no address", dns::to_text(owner), dns::to_text(type), dns::to_text(target));
  }

  const zone::ZoneView& zone_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> lint_zone(const zone::ZoneView& zone) { return Linter(zone).run(); }

}  // namespace pando::ctl
