#include "dns/zonefile/zone_scanner.h"

#include "base/words.h"
#include "dns/zonefile/zone_scanner_engine.h"

namespace pando::dns {

namespace {

ScanState state_at_origin(const ScanOptions& options) {
  ScanState state;
  state.origin = options.origin;
  return state;
}

}  // namespace

ScanReport scan_zone_file(const std::string& path, const ScanOptions& options,
                          const RecordSink& sink) {
  ZoneScanner scanner(options, state_at_origin(options), sink);
  scanner.scan_file(path);
  return scanner.take_report();
}

ScanReport scan_zone_text(std::string_view text, std::string_view label, const ScanOptions& options,
                          const RecordSink& sink) {
  ZoneScanner scanner(options, state_at_origin(options), sink);
  scanner.scan_text(without_byte_order_mark(text), label);
  return scanner.take_report();
}

ScanReport scan_zone_range(std::string_view text, std::string_view label,
                           const ScanOptions& options, ScanState& state, const RecordSink& sink) {
  ZoneScanner scanner(options, state, sink);
  scanner.scan_text(text, label);
  state = scanner.state();
  return scanner.take_report();
}

}  // namespace pando::dns
