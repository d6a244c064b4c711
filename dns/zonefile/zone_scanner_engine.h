#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dns/zonefile/zone_scanner.h"
#include "dns/zonefile/zone_scanner_fields.h"
#include "dns/zonefile/zone_scanner_generate.h"
#include "dns/zonefile/zone_scanner_include.h"
#include "dns/zonefile/zone_scanner_lexer.h"
#include "dns/zonefile/zone_scanner_rdata.h"
#include "dns/zonefile/zone_scanner_source.h"

namespace pando::dns {

/// Turns the tokens of RecordLexer into records and follows directives. One object serves one scan.
class ZoneScanner {
 public:
  ZoneScanner(const ScanOptions& options, const ScanState& state, const RecordSink& sink);

  ZoneScanner(const ZoneScanner&) = delete;
  ZoneScanner& operator=(const ZoneScanner&) = delete;

  void scan_file(const std::string& path);
  void scan_text(std::string_view text, std::string_view label);
  /// Scans the rest of a file whose earlier text was scanned already.
  void scan_rest(const std::string& path, FileSource::Identity identity, ZoneSource& source);

  [[nodiscard]] ScanReport take_report() noexcept { return std::move(report_); }
  /// True when the records depend on included files as well.
  [[nodiscard]] bool has_included() const noexcept { return included_.any(); }
  /// Hash of all text after the records; `file` is the hash of the scanned file's own octets.
  [[nodiscard]] std::uint64_t content_hash(std::uint64_t file) const {
    return included_.hash_with(file);
  }
  /// The state inherited by text after the scanned text.
  [[nodiscard]] ScanState state() const;

 private:
  using Tokens = std::span<const Token>;

  /// A file (or text) being scanned; `parent` is the file that includes it.
  struct File {
    std::string label;
    const File* parent;
    std::optional<FileSource::Identity> identity;  // none: text in memory
    RecordLexer lexer;
  };
  /// Owner, TTL, class and type: the fields before the RDATA.
  struct Head {
    NameView owner;
    RRType type{};
    std::optional<Ttl> ttl;
  };

  void scan_source(File& file, ZoneSource& source);
  bool step(File& file, TextWindow& window, ZoneSource& source);
  Status take_record();

  Status take_directive(Tokens tokens);
  Status set_origin(Tokens arguments);
  Status set_default_ttl(Tokens arguments);
  Status include(Tokens arguments);
  Status scan_included(const std::string& path, const PaddedName& origin);
  Status generate(Tokens arguments);
  Status generate_one(const Head& head, std::int64_t value, const Token& owner_side,
                      const Token& rdata_side);

  Status set_owner(const Token& token);
  Status read_head(Tokens tokens, std::size_t& at, Head& head);
  static Status read_uncommon_type(std::string_view text, RRType& type);
  Status read_ttl(std::string_view text, Ttl& ttl);
  Status read_name(const Token& token, PaddedName& name, bool plain = false) const;
  Status choose_ttl(const Head& head, Ttl& ttl, ByteView rdata);
  Status take_rdata(const Head& head, Tokens tokens, bool plain);
  Status hand_out(const Head& head, ByteView rdata);
  Ttl limit_ttl(std::uint32_t seconds);

  void add_error(const File& file, std::uint64_t line, std::string_view what);
  void warn(std::string_view what);
  void warn_if_inherited_after_directive();

  const ScanOptions& options_;
  const RecordSink& sink_;
  ScanReport report_;
  File* file_ = nullptr;
  IncludedFiles included_;
  bool stopped_ = false;

  // ScanState in the forms of the hot path.
  PaddedName origin_;
  PaddedName owner_buffers_[2];
  PaddedName* owner_ = &owner_buffers_[0];
  PaddedName* spare_owner_ = &owner_buffers_[1];  // for the next owner, which may be bad
  bool owner_known_ = false;
  std::optional<Ttl> default_ttl_;
  std::optional<Ttl> last_ttl_;
  std::uint64_t line_ = 1;

  std::string_view directive_behind_owner_;  // a blank owner now gets a warning
  bool warned_last_ttl_ = false;
  PlainRdata plain_rdata_;
  Bytes rdata_;
  GeneratedSides generated_;
};

}  // namespace pando::dns
