#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "dns/zonefile/zone_scanner.h"
#include "shm/store.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/draft.h"

namespace pando::bench {

/// The value, or the end of the program with the error's text.
template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().text.c_str());
  std::exit(1);
}
inline void must(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().text.c_str());
  std::exit(1);
}

/// A live store without a name in the file system, with the zone of `file`; everybody may query it.
inline shm::Store load_zone(const std::string& file, const dns::Name& apex) {
  shm::StoreOptions options;
  options.path = "/dev/shm/pando-bench-" + std::to_string(::getpid());
  options.layout = zone::layout_fingerprint();
  shm::Store store = must(shm::Store::create(options));
  ::unlink(options.path.c_str());  // the mapping is all that is needed
  auto transaction = store.begin();
  zone::Draft draft(transaction, {}, 2);
  must(draft.put_server_settings({}));
  zone::ZoneSettings settings;
  settings.allow_query = {{}};
  must(draft.put_zone_settings(apex, settings, 0));
  zone::ZoneBuilder builder(apex, transaction);
  dns::ScanOptions scan;
  scan.origin = apex;
  const auto report = dns::scan_zone_file(file, scan, [&](const dns::ScannedRecord& record) {
    return builder.add(record.owner, record.type, record.ttl, record.rdata);
  });
  if (!report.ok()) must(Status(fail(Errc::kInvalid, "{}", report.errors.front())));
  must(draft.put_zone(apex, *must(builder.finish()), {}));
  const auto root = draft.root();
  must(store.publish(std::move(transaction), root, 0));
  return store;
}

}  // namespace pando::bench
