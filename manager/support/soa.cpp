#include "manager/support/soa.h"

#include <ctime>

namespace pando::manager {

namespace {

constexpr std::size_t kFixedFields = 20;  // SERIAL REFRESH RETRY EXPIRE MINIMUM

/// YYYYMMDD00 of the day in UTC.
std::uint32_t date_serial(std::uint64_t now) noexcept {
  const auto seconds = static_cast<std::time_t>(now);
  std::tm day{};
  ::gmtime_r(&seconds, &day);
  const int date = (day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 + day.tm_mday;
  return static_cast<std::uint32_t>(date) * 100U;
}

}  // namespace

dns::Serial soa_serial(ByteView rdata) noexcept {
  if (rdata.size() < kFixedFields) return {};
  return dns::Serial{load_be32(rdata.data() + rdata.size() - kFixedFields)};
}

void set_soa_serial(Bytes& rdata, dns::Serial serial) noexcept {
  if (rdata.size() >= kFixedFields)
    store_be32(rdata.data() + rdata.size() - kFixedFields, serial.value);
}

dns::Serial next_serial(dns::Serial current, config::SerialPolicy policy,
                        std::uint64_t now) noexcept {
  dns::Serial clock;
  if (policy == config::SerialPolicy::kUnixtime) clock.value = static_cast<std::uint32_t>(now);
  if (policy == config::SerialPolicy::kDate) clock.value = date_serial(now);
  return clock.value != 0 && clock.ahead_of(current) ? clock : current.next();
}

}  // namespace pando::manager
