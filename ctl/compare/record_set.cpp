#include "ctl/compare/record_set.h"

#include <algorithm>

#include "base/words.h"
#include "dns/rdata/rdata.h"

namespace pando::ctl {

namespace {

constexpr std::size_t kFixedOctets = 6;       // type and TTL
constexpr std::size_t kBehindSerial = 20;     // RFC 1035 §3.3.13: five numbers end a SOA
constexpr std::uint64_t kRecordBytes = 64;    // of memory, beside its octets

std::uint8_t* serial_in(Bytes& soa) noexcept { return soa.data() + soa.size() - kBehindSerial; }

}  // namespace

void RecordSet::add(dns::NameView owner, dns::RRType type, std::uint32_t ttl, ByteView rdata) {
  Bytes canonical;
  dns::append_rdata_canonical(type, rdata, canonical);
  if (type == dns::RRType::kSOA && owner == zone_.view() && canonical.size() > kBehindSerial) {
    serial_ = load_be32(serial_in(canonical));
    store_be32(serial_in(canonical), 0);
  }
  std::string record = lower_case(dns::to_text(owner));
  record += '\0';
  Bytes fixed;
  append_be16(fixed, static_cast<std::uint16_t>(type));
  append_be32(fixed, ttl);
  record.append(fixed.begin(), fixed.end());
  record.append(canonical.begin(), canonical.end());
  bytes_ += record.size() + kRecordBytes;
  records_.push_back(std::move(record));
}

Status RecordSet::add(const ipc::RecordRow& row) {
  auto owner = dns::Name::from_text(row.owner);
  if (!owner) return pass(owner);
  const auto type = dns::rrtype_from_text(row.type);
  if (!type) return fail(Errc::kInvalid, "{}: unknown type {}", row.owner, row.type);
  Bytes rdata;
  if (auto read = dns::rdata_from_text(*type, row.rdata, dns::NameView(), rdata); !read)
    return fail(Errc::kInvalid, "{} {}: {}", row.owner, row.type, read.error().text);
  add(owner->view(), *type, row.ttl, rdata);
  return {};
}

void RecordSet::finish() {
  std::ranges::sort(records_);
  const auto repeated = std::ranges::unique(records_);
  records_.erase(repeated.begin(), repeated.end());
}

void RecordSet::clear() {
  records_.clear();
  serial_.reset();
  bytes_ = 0;
}

std::uint64_t RecordSet::missing_in(const RecordSet& other, std::size_t most,
                                    std::vector<ipc::RecordRow>& rows) const {
  std::uint64_t missing = 0;
  auto beside = other.records_.begin();
  for (const std::string& record : records_) {
    while (beside != other.records_.end() && *beside < record) ++beside;
    if (beside != other.records_.end() && *beside == record) continue;
    if (missing++ < most) rows.push_back(row_of(record));
  }
  return missing;
}

ipc::RecordRow RecordSet::row_of(const std::string& record) const {
  const std::size_t end = record.find('\0');
  Bytes octets(record.begin() + static_cast<std::ptrdiff_t>(end) + 1, record.end());
  const auto type = static_cast<dns::RRType>(load_be16(octets.data()));
  const std::uint32_t ttl = load_be32(octets.data() + 2);
  octets.erase(octets.begin(), octets.begin() + kFixedOctets);
  const bool is_apex = record.substr(0, end) == lower_case(dns::to_text(zone_));
  if (type == dns::RRType::kSOA && is_apex && serial_) store_be32(serial_in(octets), *serial_);
  return {record.substr(0, end), ttl, dns::to_text(type), dns::rdata_to_text(type, octets)};
}

}  // namespace pando::ctl
