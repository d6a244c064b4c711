#pragma once

#include <ctime>
#include <string>

#include "base/bytes.h"
#include "worker/tap/exchange.h"

namespace pando::worker {

/// Appends one line of the query log: a JSON object with the same keys in each line, and a newline.
/// docs/howto/query-log.md has the keys. All octets are printable ASCII: names are in the
/// presentation format of zone files, so that an octet of a name can end neither string nor line.
/// `request` and `response` are whole messages; `response` is empty unless `end` is kAnswered, and
/// `sent` is the time at which it left.
void put_query_log_line(const Exchange& exchange, ExchangeEnd end, ByteView request,
                        ByteView response, const timespec& sent, std::string& out);

}  // namespace pando::worker
