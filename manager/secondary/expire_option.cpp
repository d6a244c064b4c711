#include "manager/secondary/expire_option.h"

#include "dns/message/edns.h"

namespace pando::manager {

std::optional<std::uint32_t> read_expire(dns::MessageReader& reader, unsigned records) {
  for (unsigned i = 0; i < records; ++i) {
    const auto record = reader.record();
    if (!record) return std::nullopt;
    if (record->type != dns::RRType::kOPT) continue;
    const auto opt = dns::read_opt(reader.message(), *record);
    if (!opt) return std::nullopt;
    const auto value = dns::find_option(opt->options, dns::kOptionExpire);
    if (!value || value->size() != 4) return std::nullopt;
    return load_be32(value->data());
  }
  return std::nullopt;
}

}  // namespace pando::manager
