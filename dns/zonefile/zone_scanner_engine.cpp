#include "dns/zonefile/zone_scanner_engine.h"

#include <algorithm>

#include "base/pause_point.h"
#include "base/progress.h"
#include "dns/text.h"
#include "dns/ttl_text.h"

namespace pando::dns {

namespace {

constexpr std::size_t kMaxWarnings = 100;
/// RFC 2181 §8: a TTL has 31 bits.
constexpr std::uint32_t kMaxTtl = 0x7FFFFFFF;

std::string_view folder_of(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return path.substr(0, slash == std::string_view::npos ? 0 : slash + 1);
}

/// The octets of a token without escapes.
Result<std::string> unescape(std::string_view text) {
  std::string octets;
  for (std::size_t at = 0; at < text.size();) {
    const int octet = take_octet(text, at);
    if (octet < 0) return fail(Errc::kInvalid, "bad escape in {}", quote_for_message(text));
    octets += static_cast<char>(octet);
  }
  return octets;
}

/// The SOA's last field (RFC 1035 §3.3.13).
std::uint32_t soa_minimum(ByteView rdata) noexcept {
  return rdata.size() < 4 ? 0 : load_be32(rdata.data() + rdata.size() - 4);
}

/// True if the calling thread's work was given up.
bool is_given_up() noexcept {
  const Progress* const progress = Progress::here();
  return progress != nullptr && progress->is_given_up();
}

/// Checks the number of a directive's arguments.
Status check_count(std::span<const Token> arguments, std::size_t least, std::size_t most,
                   std::string_view directive) {
  if (arguments.size() < least)
    return fail(Errc::kInvalid, "{} needs {} argument{}", directive, least, least == 1 ? "" : "s");
  if (arguments.size() > most)
    return fail(Errc::kInvalid, "extra text {} behind {}", quote_for_message(arguments[most].text),
                directive);
  return {};
}

}  // namespace

ZoneScanner::ZoneScanner(const ScanOptions& options, const ScanState& state, const RecordSink& sink)
    : options_(options),
      sink_(sink),
      origin_(state.origin),
      default_ttl_(state.default_ttl),
      last_ttl_(state.last_ttl),
      line_(state.line),
      directive_behind_owner_(state.directive_behind_owner) {
  if (state.owner) {
    owner_->assign(*state.owner);
    owner_known_ = true;
  }
}

ScanState ZoneScanner::state() const {
  ScanState state{Name(origin_.view()), std::nullopt, default_ttl_,
                  last_ttl_,            line_,        directive_behind_owner_};
  if (owner_known_) state.owner = Name(owner_->view());
  return state;
}

// ---- files ----

void ZoneScanner::scan_file(const std::string& path) {
  FileSource source;
  if (Status opened = source.open(path); !opened) {
    report_.errors.push_back(fmt::format("{}: {}", path, opened.error().text));
    return;
  }
  File file{path, nullptr, source.identity(), {}};
  scan_source(file, source);
  report_.content_hash = content_hash(source.content_hash());
  report_.has_included = has_included();
}

void ZoneScanner::scan_text(std::string_view text, std::string_view label) {
  MemorySource source(text);
  File file{std::string(label), nullptr, std::nullopt, {}};
  file.lexer.set_line(line_);
  scan_source(file, source);
  line_ = file.lexer.line();
}

void ZoneScanner::scan_rest(const std::string& path, FileSource::Identity identity,
                            ZoneSource& source) {
  File file{path, nullptr, identity, {}};
  file.lexer.set_line(line_);
  scan_source(file, source);
  line_ = file.lexer.line();
}

void ZoneScanner::scan_source(File& file, ZoneSource& source) {
  File* const outer = std::exchange(file_, &file);
  TextWindow window(std::min(options_.window_octets, source.size_hint()));
  while (!stopped_ && step(file, window, source)) {
  }
  if (file.lexer.unfinished_line()) warn("file does not end with a line end");
  file_ = outer;
}

/// Returns false when the file is done.
bool ZoneScanner::step(File& file, TextWindow& window, ZoneSource& source) {
  RecordLexer& lexer = file.lexer;
  switch (lexer.next()) {
    case RecordLexer::Outcome::kRecord:
      if (Status taken = take_record(); !taken)
        add_error(file, lexer.record_line(), taken.error().text);
      return true;
    case RecordLexer::Outcome::kError:
      add_error(file, lexer.error_line(), lexer.error());
      return true;
    case RecordLexer::Outcome::kNeedMore: {
      const auto refilled = window.refill(lexer, source);
      if (refilled && options_.bytes_read != nullptr)
        options_.bytes_read->fetch_add(*refilled, std::memory_order_relaxed);
      if (!refilled) add_error(file, lexer.line(), refilled.error().text);
      // Records ask for themselves; a file may have none for a hundred megabytes.
      if (refilled && is_given_up()) add_error(file, lexer.line(), kGivenUp);
      return refilled.has_value();
    }
    case RecordLexer::Outcome::kEnd:
      break;
  }
  return false;
}

void ZoneScanner::add_error(const File& file, std::uint64_t line, std::string_view what) {
  report_.errors.push_back(fmt::format("{}:{}: {}", file.label, line, what));
  stopped_ = report_.errors.size() >= std::max<std::size_t>(options_.max_errors, 1);
}

void ZoneScanner::warn(std::string_view what) {
  if (report_.warnings.size() < kMaxWarnings)
    report_.warnings.push_back(
        fmt::format("{}:{}: {}", file_->label, file_->lexer.record_line(), what));
}

// ---- records ----

Status ZoneScanner::take_record() {
  const Tokens tokens = file_->lexer.tokens();
  std::size_t at = 0;
  if (!file_->lexer.blank_owner()) {
    const Token& first = tokens[0];
    if (first.text.starts_with('$') && !first.quoted) return take_directive(tokens);
    if (Status owner = set_owner(first); !owner) return owner;
    at = 1;
  } else if (!owner_known_) {
    return fail(Errc::kInvalid, "no owner name, and none before it");
  } else if (!directive_behind_owner_.empty()) {
    warn_if_inherited_after_directive();
  }
  Head head;
  head.owner = owner_->view();
  if (Status read = read_head(tokens, at, head); !read) return read;
  return take_rdata(head, tokens.subspan(at), file_->lexer.plain());
}

Status ZoneScanner::set_owner(const Token& token) {
  if (Status read = read_name(token, *spare_owner_, file_->lexer.plain()); !read) return read;
  std::swap(owner_, spare_owner_);
  owner_known_ = true;
  directive_behind_owner_ = {};
  return {};
}

Status ZoneScanner::read_name(const Token& token, PaddedName& name, bool plain) const {
  if (plain || token.text.find('\\') == std::string_view::npos) {
    if (const std::size_t size = read_plain_name(token.text, origin_, name.buffer()); size != 0) {
      name.set_size(size);
      return {};
    }
  }
  Result<Name> read = Name::from_text(token.text, origin_.view());
  if (!read) return pass(read);
  name.assign(*read);
  return {};
}

/// RFC 1035 §5.1: [TTL] [class] type or [class] [TTL] type. Leaves `at` at the RDATA.
Status ZoneScanner::read_head(Tokens tokens, std::size_t& at, Head& head) {
  bool has_class = false;
  for (; at < tokens.size(); ++at) {
    const Token& token = tokens[at];
    if (token.quoted) return fail(Errc::kInvalid, "quotes where TTL, class or type should be");
    if (!head.ttl && token.text[0] >= '0' && token.text[0] <= '9') {
      if (Status read = read_ttl(token.text, head.ttl.emplace()); !read) return read;
    } else if (!has_class && is_class_in(token.text)) {
      has_class = true;
    } else if (read_common_type(token.text, head.type)) {
      ++at;
      return {};
    } else if (const auto found = rrclass_from_text(token.text); found && !has_class) {
      has_class = true;
      if (*found != RRClass::kIN)
        return fail(Errc::kInvalid, "class {} is not IN", to_text(*found));
    } else {
      ++at;
      return read_uncommon_type(token.text, head.type);
    }
  }
  return fail(Errc::kInvalid, "record has no type");
}

Status ZoneScanner::read_uncommon_type(std::string_view text, RRType& type) {
  const auto found = rrtype_from_text(text);
  if (!found) return fail(Errc::kInvalid, "unknown record type {}", quote_for_message(text));
  if (is_meta_type(*found))
    return fail(Errc::kInvalid, "type {} cannot be in a zone", to_text(*found));
  type = *found;
  return {};
}

Status ZoneScanner::read_ttl(std::string_view text, Ttl& ttl) {
  if (read_plain_number(text, ttl.seconds)) return {};
  const Result<std::uint32_t> seconds = ttl_from_text(text);
  if (!seconds) return fail(Errc::kInvalid, "bad TTL {}", quote_for_message(text));
  ttl = limit_ttl(*seconds);
  return {};
}

Ttl ZoneScanner::limit_ttl(std::uint32_t seconds) {
  if (seconds <= kMaxTtl) return Ttl{seconds};
  // RFC 2181 §8: a received value with the most significant bit set is treated as zero.
  warn(fmt::format("TTL {} is above {}, using 0", seconds, kMaxTtl));
  return Ttl{0};
}

/// `plain`: no token has an escape or quotes, so that the fast reader may try first.
Status ZoneScanner::take_rdata(const Head& head, Tokens tokens, bool plain) {
  if (plain) {
    const std::size_t size = read_plain_rdata(head.type, tokens, origin_, plain_rdata_.data());
    if (size != 0) return hand_out(head, {plain_rdata_.data(), size});
  }
  rdata_.clear();
  if (Status read = rdata_from_text(head.type, tokens, origin_.view(), rdata_); !read)
    return fail(Errc::kInvalid, "{}: {}", to_text(head.type), read.error().text);
  return hand_out(head, rdata_);
}

Status ZoneScanner::hand_out(const Head& head, ByteView rdata) {
  ScannedRecord record{head.owner, head.type, {}, rdata};
  if (Status chosen = choose_ttl(head, record.ttl, rdata); !chosen) return chosen;
  ++report_.records;
  return sink_(record);
}

/// RFC 2308 §4: $TTL is the default; without it the "last stated" TTL of RFC 1035 §5.1 applies. A
/// zone whose first record is an SOA without TTL takes the SOA's MINIMUM, as in BIND.
Status ZoneScanner::choose_ttl(const Head& head, Ttl& ttl, ByteView rdata) {
  if (head.ttl) {
    last_ttl_ = head.ttl;
  } else if (default_ttl_) {
    last_ttl_ = default_ttl_;
  } else if (last_ttl_) {
    if (!std::exchange(warned_last_ttl_, true))
      warn("no TTL here and no $TTL: using the last stated TTL (RFC 1035)");
  } else if (head.type == RRType::kSOA) {
    warn("no TTL here and no $TTL: using the SOA's MINIMUM");
    default_ttl_ = last_ttl_ = limit_ttl(soa_minimum(rdata));
  } else {
    return fail(Errc::kInvalid, "no TTL here, no $TTL and none before");
  }
  ttl = *last_ttl_;
  return {};
}

void ZoneScanner::warn_if_inherited_after_directive() {
  warn(fmt::format("owner name inherited from before {}: {}", directive_behind_owner_,
                   to_text(owner_->view())));
  directive_behind_owner_ = {};
}

// ---- directives ----

Status ZoneScanner::take_directive(Tokens tokens) {
  const std::string_view name = tokens[0].text;
  const Tokens arguments = tokens.subspan(1);
  if (equal_ignoring_case(name, "$ORIGIN")) return set_origin(arguments);
  if (equal_ignoring_case(name, "$TTL")) return set_default_ttl(arguments);
  if (equal_ignoring_case(name, "$INCLUDE")) return include(arguments);
  if (equal_ignoring_case(name, "$GENERATE")) return generate(arguments);
  return fail(Errc::kInvalid, "unknown directive {}", quote_for_message(name));
}

Status ZoneScanner::set_origin(Tokens arguments) {
  if (Status count = check_count(arguments, 1, 1, "$ORIGIN"); !count) return count;
  PaddedName origin;
  if (Status read = read_name(arguments[0], origin); !read) return read;
  origin_ = origin;
  directive_behind_owner_ = "$ORIGIN";
  return {};
}

Status ZoneScanner::set_default_ttl(Tokens arguments) {
  if (Status count = check_count(arguments, 1, 1, "$TTL"); !count) return count;
  Ttl ttl;
  if (Status read = read_ttl(arguments[0].text, ttl); !read) return read;
  default_ttl_ = ttl;
  return {};
}

Status ZoneScanner::include(Tokens arguments) {
  if (Status count = check_count(arguments, 1, 2, "$INCLUDE"); !count) return count;
  if (Status counted = included_.count(options_); !counted) return counted;
  Result<std::string> path = unescape(arguments[0].text);
  if (!path) return pass(path);
  if (path->empty() || path->find('\0') != std::string::npos)
    return fail(Errc::kInvalid, "$INCLUDE has no valid file name");
  PaddedName origin = origin_;
  if (arguments.size() == 2)
    if (Status read = read_name(arguments[1], origin); !read) return read;
  const bool absolute = path->starts_with('/');
  return scan_included(absolute ? *path : fmt::format("{}{}", folder_of(file_->label), *path),
                       origin);
}

Status ZoneScanner::scan_included(const std::string& path, const PaddedName& origin) {
  FileSource source;
  if (Status opened = source.open(path); !opened)
    return fail(opened.error().code, "$INCLUDE {}: {}", path, opened.error().text);
  for (const File* file = file_; file != nullptr; file = file->parent)
    if (file->identity == source.identity())
      return fail(Errc::kInvalid, "$INCLUDE {}: this file is being read already", path);

  const PaddedName saved_origin = std::exchange(origin_, origin);
  const PaddedName saved_owner = *owner_;
  const bool saved_owner_known = owner_known_;
  // Only the first file's size is known in advance, so the total becomes unknown.
  if (Progress* const progress = Progress::here()) progress->lose_total();
  pause_point("zone-include");
  included_.enter();
  File file{path, file_, source.identity(), {}};
  scan_source(file, source);
  included_.leave(source.content_hash());
  // RFC 1035 §5.1: "a $INCLUDE entry never changes the relative origin of the parent file".
  origin_ = saved_origin;
  if (owner_->view() != saved_owner.view()) directive_behind_owner_ = "$INCLUDE";
  *owner_ = saved_owner;
  owner_known_ = saved_owner_known;
  return {};
}

// ---- $GENERATE range owner [TTL] [class] type rdata ----

Status ZoneScanner::generate(Tokens arguments) {
  if (arguments.size() < 4)
    return fail(Errc::kInvalid, "$GENERATE needs a range, an owner, a type and RDATA");
  Result<GenerateRange> range = GenerateRange::from_text(arguments[0].text);
  if (!range) return pass(range);
  if (range->count() > options_.max_generated)
    return fail(Errc::kInvalid, "$GENERATE would make {} records, above {}", range->count(),
                options_.max_generated);
  Head head;
  std::size_t at = 2;
  if (Status read = read_head(arguments, at, head); !read) return read;
  if (Status count = check_count(arguments.subspan(at), 1, 1, "$GENERATE"); !count) return count;
  for (std::int64_t value = range->start; value <= range->stop; value += range->step) {
    Status made = generate_one(head, value, arguments[1], arguments[at]);
    if (!made || stopped_) return made;
  }
  return {};
}

Status ZoneScanner::generate_one(const Head& head, std::int64_t value, const Token& owner_side,
                                 const Token& rdata_side) {
  Result<Token> owner_token = generated_.owner(owner_side, value);
  if (!owner_token) return pass(owner_token);
  PaddedName owner;  // the last stated owner stays unchanged
  if (Status read = read_name(*owner_token, owner); !read) return read;
  Result<Tokens> tokens = generated_.rdata(rdata_side, value);
  if (!tokens) return pass(tokens);
  Head made = head;
  made.owner = owner.view();
  return take_rdata(made, *tokens, generated_.plain());
}

}  // namespace pando::dns
