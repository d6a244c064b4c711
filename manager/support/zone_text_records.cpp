#include "manager/support/zone_text_records.h"

#include "dns/dnssec/derived_types.h"
#include "zone/read/each_record.h"

namespace pando::manager {

Status write_zone_records(dns::ZoneTextWriter& writer, const zone::ZoneView& zone,
                          WrittenRecords written) {
  std::uint64_t left_out = 0;
  // RFC 1035 §5.2 demands no order, but people and some tools expect the SOA first.
  const zone::RRsetView soa = zone.soa();
  Status done;
  if (const ByteView rdata = soa.first_rdata(); !rdata.empty())
    done = writer.add(zone.apex(), dns::RRType::kSOA, soa.ttl(), rdata);
  if (done)
    done = zone::for_each_record(
        zone, [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
          if (type == dns::RRType::kSOA) return {};
          if (written == WrittenRecords::kSource && dns::is_derived(type, owner == zone.apex())) {
            ++left_out;
            return {};
          }
          return writer.add(owner, type, ttl, rdata);
        });
  if (done) done = writer.finish();
  if (done && writer.records() + left_out != zone.record_count())
    return fail(Errc::kCorrupt, "{} records where {} are counted", writer.records() + left_out,
                zone.record_count());
  return done;
}

}  // namespace pando::manager
