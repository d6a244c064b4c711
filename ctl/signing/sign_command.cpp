#include "ctl/signing/sign_command.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/progress.h"
#include "base/unix_time.h"
#include "ctl/backup/file_copy.h"
#include "ctl/backup/handed_file.h"
#include "ctl/commands/scratch_zone.h"
#include "ctl/view/json_text.h"
#include "ctl/view/progress_bar.h"
#include "dns/encoding.h"
#include "dns/text.h"
#include "dns/zonefile/zone_text.h"
#include "zone/dnssec/zone_signing.h"
#include "zone/draft/draft.h"
#include "zone/read/each_record.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

/// RFC 4034 §3.1.5: times compare as serial numbers, so they lie less than 2^31 seconds apart.
constexpr std::uint64_t kMaxPeriod = 0x7FFFFFFF;

Result<zone::SignatureTimes> times_of(const SignRequest& request, std::uint64_t now) {
  zone::SignatureTimes times = zone::usual_times(now);
  if (!request.inception.empty()) {
    const auto given = time_from_text(request.inception);
    if (!given) return pass(given);
    times.inception = *given;
  }
  if (!request.expiration.empty()) {
    const auto given = time_from_text(request.expiration);
    if (!given) return pass(given);
    times = {times.inception, *given, 0};
  }
  if (times.expiration <= times.inception + times.spread ||
      times.expiration - times.inception > kMaxPeriod)
    return fail(Errc::kInvalid, "signatures would end before they begin, or after 68 years");
  return times;
}

Result<std::optional<dns::Serial>> serial_of(const SignRequest& request, dns::Serial before,
                                             std::uint64_t now) {
  if (request.serial == "keep") return std::optional<dns::Serial>();
  if (request.serial == "increment") return std::optional(before.next());
  const dns::Serial serial{static_cast<std::uint32_t>(now)};
  if (serial.ahead_of(before)) return std::optional(serial);
  return fail(Errc::kInvalid, "the serial {} is not before the time: use --serial increment",
              before.value);
}

Result<zone::SigningDenial> denial_of(const SignRequest& request) {
  zone::SigningDenial denial{
      request.is_nsec3, request.is_opt_out, static_cast<std::uint16_t>(request.iterations), {}};
  if (request.salt == "-") return denial;
  auto salt = dns::hex_decode(request.salt);
  if (!salt || salt->size() > dns::kMaxSaltOctets)
    return fail(Errc::kInvalid, "{} is no salt: hexadecimal, at most 255 octets, or -",
                dns::quote_for_message(request.salt));
  denial.salt = std::move(*salt);
  return denial;
}

/// SOA first: RFC 1035 §5.2 demands no order, but people and some tools expect it.
Status write_records(const zone::ZoneView& zone, const dns::ZoneTextWriter::Output& output) {
  dns::ZoneTextWriter writer(zone.apex(), {}, output);
  const zone::RRsetView soa = zone.soa();
  auto done = writer.add(zone.apex(), dns::RRType::kSOA, soa.ttl(), soa.first_rdata());
  if (done)
    done = zone::for_each_record(
        zone, [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
          if (type == dns::RRType::kSOA) return {};
          return writer.add(owner, type, ttl, rdata);
        });
  return done ? writer.finish() : done;
}

/// Whether a file begins as write_records() does: a key, or a source of the zone, is never
/// replaced.
bool is_signed_zone(ByteView head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.substr(0, text.find('\n')).find(" IN SOA ") != std::string_view::npos;
}

/// The file gets its name when it is whole and on disk.
Status write_file(const zone::ZoneView& zone, const SignRequest& request) {
  std::error_code none;
  if (fs::equivalent(request.file, request.out, none))
    return fail(Errc::kInvalid, "{}: the signed zone would take its source's place", request.out);
  HandedFile::Wanted wanted{fs::absolute(request.out).string(), 0644, is_signed_zone,
                            "a zone that was signed here", true};
  auto file = HandedFile::open(wanted);
  if (!file) return fail(file.error().code, "{}: {}", request.out, file.error().text);
  const int fd = file->descriptor()->get();
  auto done = write_records(
      zone, [fd](std::string_view text) { return write_all(fd, bytes_of_text(text)); });
  if (done) done = file->place();
  if (!done) return fail(done.error().code, "{}: {}", request.out, done.error().text);
  return {};
}

Status write_signed(const zone::ZoneView& zone, const SignRequest& request, const Output& output) {
  if (!request.out.empty()) return write_file(zone, request);
  return write_records(zone, [&](std::string_view text) -> Status {
    if (output.out.write(text.data(), static_cast<std::streamsize>(text.size()))) return {};
    return fail(Errc::kIo, "the output cannot be written");
  });
}

struct Signed {
  std::vector<std::string> warnings;
  zone::ZoneSigningReport report;
  std::uint32_t serial = 0;
  std::uint64_t records = 0;
  std::uint64_t names = 0;
  std::uint64_t first_end = 0;
};

/// One zone file's way into a store, and out of it with signatures.
class ZoneFileSigning {
 public:
  ZoneFileSigning(const SignRequest& request, const dns::Name& apex, const Output& output,
                  shm::Store& store)
      : request_(request),
        apex_(apex),
        output_(output),
        transaction_(store.begin()),
        draft_(transaction_, {}, 1) {}

  /// The lines of all errors; empty = done.
  std::vector<std::string> run(const zone::SigningKeys& keys, std::uint64_t now) {
    Progress progress;
    const Progress::Scope scope(&progress);
    const ProgressWatch watch(output_.err, !output_.json && stderr_is_terminal(), progress);
    if (auto errors = read(progress); !errors.empty()) return errors;
    auto done = sign(keys, now);
    if (done) done = write_signed(view(), request_, output_);
    if (!done) return {done.error().text};
    done_.serial = view().serial().value;
    done_.records = view().record_count();
    done_.names = view().name_count();
    return {};
  }
  [[nodiscard]] const Signed& done() const noexcept { return done_; }

 private:
  [[nodiscard]] zone::ZoneView view() const { return draft_.view().zone_at(apex_); }

  std::vector<std::string> read(Progress& progress) {
    zone::ZoneBuilder builder(apex_, transaction_);
    dns::ScanOptions options;
    options.origin = apex_;
    auto scan = read_zone_file(request_.file, options, builder, progress);
    done_.warnings = std::move(scan.warnings);
    if (!scan.ok()) return std::move(scan.errors);
    auto built = builder.finish();
    if (!built) return lines_about(request_.file, options, built.error(), progress);
    auto put = draft_.put_zone_settings(apex_, zone::ZoneSettings(), 0);
    if (put) put = draft_.put_zone(apex_, **built, {});
    if (!put) return {put.error().text};
    return {};
  }

  Status sign(const zone::SigningKeys& keys, std::uint64_t now) {
    zone::ZoneSigningOptions options;
    const auto times = times_of(request_, now);
    if (!times) return pass(times);
    const auto serial = serial_of(request_, view().serial(), now);
    if (!serial) return pass(serial);
    options.times = *times;
    options.serial = *serial;
    if (request_.with_cds) options.parent_request = zone::ParentRequest::kKeys;
    const auto denial = denial_of(request_);
    if (!denial) return pass(denial);
    options.denial = *denial;
    if (std::string doubt = dns::doubt_about_iterations(denial->iterations); !doubt.empty())
      done_.warnings.push_back(std::move(doubt));
    options.threads = std::max(std::thread::hardware_concurrency(), 1U);
    zone::ZoneBuilder builder(apex_, transaction_);
    const auto report = zone::sign_zone(view(), keys, options, builder);
    if (!report) return pass(report);
    auto built = builder.finish();
    if (!built) return pass(built);
    done_.report = *report;
    done_.first_end = times->expiration - times->spread;
    if (report->dropped != 0)
      done_.warnings.push_back(
          fmt::format("{}: {} left out, of types that signing makes anew (RRSIG, NSEC, DNSKEY and "
                      "the like), or a digest of the zone",
                      request_.file, counted(report->dropped, "record")));
    return draft_.put_zone(apex_, **built, {});
  }

  const SignRequest& request_;
  const dns::Name& apex_;
  const Output& output_;
  shm::Transaction transaction_;
  zone::Draft draft_;
  Signed done_;
};

void report_errors(const std::vector<std::string>& errors, const Output& output) {
  if (output.json)
    output.err << json_text({{"error", fmt::format("{}", fmt::join(errors, "\n"))}}) << '\n';
  else
    for (const std::string& error : errors) output.err << error << '\n';
}

void report_done(const SignRequest& request, const dns::Name& apex, const Signed& done,
                 const Output& output) {
  if (output.json) {
    output.out << json_text({{"zone", dns::to_text(apex)},
                             {"file", request.out},
                             {"serial", done.serial},
                             {"records", done.records},
                             {"names", done.names},
                             {"signatures", done.report.signatures},
                             {"signatures_end", done.first_end},
                             {"dropped", done.report.dropped},
                             {"warnings", done.warnings}})
               << '\n';
    return;
  }
  for (const std::string& warning : done.warnings) output.err << "warning: " << warning << '\n';
  if (!request.out.empty())
    output.out << fmt::format(
        "{}: signed, serial {}, {} at {}, {} until {} or later\n", dns::to_text(apex), done.serial,
        counted(done.records, "record"), counted(done.names, "name"),
        counted(done.report.signatures, "signature"), time_text(done.first_end));
}

}  // namespace

Result<std::uint64_t> time_from_text(const std::string& text) {
  constexpr std::size_t kDateDigits = 14, kSecondsDigits = 10;
  const auto number = dns::parse_decimal(text, UINT64_MAX);
  if (number && text.size() <= kSecondsDigits) return *number;
  std::tm parts{};
  const char* const end = ::strptime(text.c_str(), "%Y%m%d%H%M%S", &parts);
  std::tm again = parts;
  const std::time_t seconds = ::timegm(&again);
  // strptime() takes the 31st of February, and timegm() makes the 3rd of March of it.
  if (!number || text.size() != kDateDigits || end == nullptr || *end != '\0' || seconds < 0 ||
      again.tm_mday != parts.tm_mday)
    return fail(Errc::kInvalid, "{} is no time: YYYYMMDDHHmmSS, or seconds since 1970",
                dns::quote_for_message(text));
  return static_cast<std::uint64_t>(seconds);
}

int sign_zone_file(const SignRequest& request, Output output) {
  if (output.json && request.out.empty())
    return refuse(output, {Errc::kInvalid, "with --json the zone needs --out"}, kUsage);
  const std::uint64_t now = unix_seconds();
  if (const auto times = times_of(request, now); !times)
    return refuse(output, times.error(), kUsage);
  if (const auto denial = denial_of(request); !denial)
    return refuse(output, denial.error(), kUsage);
  auto read = read_keys(request.keys);
  if (!read) return refuse(output, read.error());
  const auto apex = zone_of(*read, request.origin);
  if (!apex) return refuse(output, apex.error());
  std::vector<dns::SigningKey> found;
  for (const NamedKey& key : *read) found.push_back(key.read.key);
  const auto keys = zone::SigningKeys::make(std::move(found));
  if (!keys) return refuse(output, keys.error(), kUsage);
  auto store = scratch_store();
  if (!store) return refuse(output, store.error());
  ZoneFileSigning signing(request, *apex, output, *store);
  if (const auto errors = signing.run(*keys, now); !errors.empty()) {
    report_errors(errors, output);
    return kFailed;
  }
  report_done(request, *apex, signing.done(), output);
  return kDone;
}

}  // namespace pando::ctl
