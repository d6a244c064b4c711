#include "dns/dnssec/key_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/fd.h"
#include "base/files/guarded_path.h"
#include "base/secret.h"
#include "base/words.h"
#include "dns/dnssec/key_algorithm.h"
#include "dns/dnssec/pkcs8.h"
#include "dns/encoding.h"
#include "dns/rdata/rdata.h"
#include "dns/text.h"

namespace pando::dns {

namespace {

constexpr std::string_view kBlanks = " \t\r\f\v";

std::string_view trimmed(std::string_view text) noexcept {
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

/// The lines of a file, one after the other.
class Lines {
 public:
  explicit Lines(const KeyFileText& file) noexcept : rest_(file.text), path_(file.path) {}

  /// Without blanks at both ends; false at the end of the file.
  bool next(std::string_view& line) noexcept {
    if (rest_.empty()) return false;
    ++number_;
    const auto end = std::min(rest_.find('\n'), rest_.size());
    line = trimmed(rest_.substr(0, end));
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return true;
  }
  [[nodiscard]] tl::unexpected<Error> fault(std::string_view cause,
                                            Errc code = Errc::kInvalid) const {
    return fail(code, "{}:{}: {}", path_, number_, cause);
  }

 private:
  std::string_view rest_;
  std::string_view path_;
  std::size_t number_ = 0;
};

tl::unexpected<Error> fault_of(const KeyFileText& file, std::string_view cause,
                               Errc code = Errc::kInvalid) {
  return fail(code, "{}: {}", file.path, cause);
}

// DNSKEY records --------------------------------------------------------------------------------

std::vector<Token> words_of_record(std::string_view line) {
  std::vector<Token> words;
  line = line.substr(0, line.find(';'));
  for (line = trimmed(line); !line.empty(); line = trimmed(line)) {
    const auto end = std::min(line.find_first_of(kBlanks), line.size());
    words.push_back({line.substr(0, end), false});
    line.remove_prefix(end);
  }
  return words;
}

/// The place of the word DNSKEY, behind owner, TTL and class; 0: the line is no such record.
std::size_t place_of_type(const std::vector<Token>& words) noexcept {
  constexpr std::size_t kLastPlace = 3;
  for (std::size_t i = 1; i < words.size() && i <= kLastPlace; ++i)
    if (equal_ignoring_case(words[i].text, "DNSKEY")) return i;
  return 0;
}

/// RFC 4034 §2.1.1, RFC 5011 §2.1: the flags with which a key may sign a zone; else the reason.
std::string_view fault_of_record(const DnskeyFields& fields) noexcept {
  if (fields.is_revoked()) return "the key is revoked";
  if (!fields.is_zone_key()) return "the DNSKEY record is not that of a zone's key";
  if ((fields.flags & ~(kZoneKeyFlag | kSepFlag)) != 0)
    return "the DNSKEY record has flags beside those of a zone's key";
  return {};
}

/// The text of a record is not repeated either: it might be a part of a private key.
Result<KeyRecord> record_from(const std::vector<Token>& words, std::size_t type,
                              const Lines& lines) {
  const auto zone = Name::from_text(words[0].text);
  KeyRecord record;
  const auto data = std::span<const Token>(words).subspan(type + 1);
  if (!zone || !rdata_from_text(RRType::kDNSKEY, data, NameView(), record.rdata))
    return lines.fault("the DNSKEY record is malformed");
  const auto fields = parse_dnskey(record.rdata);
  if (!fields) return lines.fault("the DNSKEY record is malformed");
  if (const auto fault = fault_of_record(*fields); !fault.empty()) return lines.fault(fault);
  record.zone = *zone;
  record.flags = fields->flags;
  return record;
}

/// Takes the line's record, if it has one, as the file's only one.
Status take_record(std::string_view line, const Lines& lines, std::optional<KeyRecord>& found) {
  const auto words = words_of_record(line);
  const std::size_t type = place_of_type(words);
  if (type == 0) return {};
  if (found) return lines.fault("a second DNSKEY record");
  auto record = record_from(words, type, lines);
  if (!record) return pass(record);
  found = std::move(*record);
  return {};
}

Result<KeyRecord> parse_record_file(const KeyFileText& file) {
  Lines lines(file);
  std::optional<KeyRecord> found;
  for (std::string_view line; lines.next(line);) {
    if (line.empty() || line.starts_with(';')) continue;
    const bool had_one = found.has_value();
    if (auto taken = take_record(line, lines, found); !taken) return pass(taken);
    if (!had_one && !found) return lines.fault("not a DNSKEY record");
  }
  if (!found) return fault_of(file, "no DNSKEY record");
  return std::move(*found);
}

// PEM -------------------------------------------------------------------------------------------

constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ";
constexpr std::string_view kPrivateKey = "PRIVATE KEY-----";

/// Why a PEM block of another kind is not read.
std::string_view fault_of_block(std::string_view label) noexcept {
  if (label == "ENCRYPTED PRIVATE KEY-----")
    return "the key is encrypted: 'openssl pkey' writes it in the clear";
  if (label.ends_with("PRIVATE KEY-----"))
    return "not PKCS #8: 'openssl pkey' turns other forms of keys into it";
  return "a PEM block of another kind than PRIVATE KEY";
}

struct PemKey {
  PrivateNumbers numbers;
  std::optional<KeyRecord> record;
};

/// The octets of the block whose first line was just read.
Result<Bytes> read_block(const KeyFileText& file, Lines& lines) {
  Bytes der;
  der.reserve(file.text.size());  // growth would copy it
  Base64Decoder decoder;
  for (std::string_view line; lines.next(line);) {
    if (line.starts_with(kEnd)) {
      if (line.substr(kEnd.size()) != kPrivateKey || !decoder.finish())
        return lines.fault("the PEM block does not end as it began");
      return der;
    }
    if (!decoder.feed(line, der)) return lines.fault("not base 64");
  }
  return lines.fault("the PEM block has no end");
}

/// RFC 7468 §2: text before a block is for people. Ours has the DNSKEY record there.
Result<PemKey> parse_pem(const KeyFileText& file) {
  Lines lines(file);
  PemKey key;
  bool has_key = false;
  for (std::string_view line; lines.next(line);) {
    if (!line.starts_with(kBegin)) {
      if (auto taken = take_record(line, lines, key.record); !taken) return pass(taken);
      continue;
    }
    if (has_key) return lines.fault("a second key in one file");
    const std::string_view label = line.substr(kBegin.size());
    if (label != kPrivateKey) return lines.fault(fault_of_block(label), Errc::kUnsupported);
    const auto der = read_block(file, lines);
    if (!der) return pass(der);
    auto numbers = parse_pkcs8(*der);
    if (!numbers) return lines.fault(numbers.error().text, numbers.error().code);
    key.numbers = std::move(*numbers);
    has_key = true;
  }
  return key;
}

// Private-key-format ----------------------------------------------------------------------------

constexpr std::string_view kFormat = "Private-key-format";

struct NumberField {
  std::string_view name;
  Bytes PrivateNumbers::* member;
};
constexpr std::array<NumberField, 9> kNumberFields = {{
    {"Modulus", &PrivateNumbers::modulus},
    {"PublicExponent", &PrivateNumbers::public_exponent},
    {"PrivateExponent", &PrivateNumbers::private_exponent},
    {"Prime1", &PrivateNumbers::prime1},
    {"Prime2", &PrivateNumbers::prime2},
    {"Exponent1", &PrivateNumbers::exponent1},
    {"Exponent2", &PrivateNumbers::exponent2},
    {"Coefficient", &PrivateNumbers::coefficient},
    {"PrivateKey", &PrivateNumbers::secret},
}};

/// "13 (ECDSAP256SHA256)" or "13".
std::optional<std::uint8_t> algorithm_from(std::string_view value) noexcept {
  const auto number = parse_decimal(value.substr(0, value.find(' ')), UINT8_MAX);
  if (!number || *number == 0) return std::nullopt;
  return static_cast<std::uint8_t>(*number);
}

Status take_number(Bytes& number, std::string_view value, const Lines& lines) {
  Base64Decoder decoder;
  number.reserve(value.size());
  if (!decoder.feed(value, number) || !decoder.finish() || number.empty())
    return lines.fault("not base 64");
  return {};
}

/// Fields of other names are times, which decide nothing here, or come from a later BIND.
Status take_field(std::string_view name, std::string_view value, const Lines& lines,
                  PrivateNumbers& numbers) {
  if (name == "Engine" || name == "Label")
    return lines.fault("the private key is in a hardware module", Errc::kUnsupported);
  if (name == "Algorithm") {
    const auto algorithm = algorithm_from(value);
    if (!algorithm || numbers.algorithm != 0)
      return lines.fault(algorithm ? "a second algorithm" : "not a number of an algorithm");
    numbers.algorithm = *algorithm;
  }
  for (const NumberField& field : kNumberFields) {
    if (field.name != name) continue;
    if (!(numbers.*field.member).empty()) return lines.fault("a field is given twice");
    return take_number(numbers.*field.member, value, lines);
  }
  return {};
}

/// RSA needs all fields but the last one, other algorithms the last one alone. An algorithm that
/// does not sign here lacks none.
std::string_view missing_field(const PrivateNumbers& numbers) noexcept {
  const KeyAlgorithm* const row = find_key_algorithm(numbers.algorithm);
  if (row == nullptr || !row->may_sign) return {};
  const bool is_rsa = row->family == KeyFamily::kRsa;
  for (const NumberField& field : kNumberFields) {
    const bool is_wanted = is_rsa == (field.member != &PrivateNumbers::secret);
    if (is_wanted && (numbers.*field.member).empty()) return field.name;
  }
  return {};
}

Result<PrivateNumbers> parse_private_format(const KeyFileText& file) {
  Lines lines(file);
  PrivateNumbers numbers;
  bool has_format = false;
  for (std::string_view line; lines.next(line);) {
    if (line.empty() || line.starts_with(';')) continue;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return lines.fault("a line without a field's name");
    const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
    if (name == kFormat) {
      if (has_format) return lines.fault("a second key in one file");
      // Minor versions add fields, which may be left out.
      if (!value.starts_with("v1.")) return lines.fault("not version 1 of the format");
      has_format = true;
    } else if (auto taken = take_field(name, value, lines, numbers); !taken) {
      return pass(taken);
    }
  }
  if (numbers.algorithm == 0) return fault_of(file, "no algorithm");
  return numbers;
}

// Both ------------------------------------------------------------------------------------------

bool is_pem(std::string_view text) noexcept { return text.find(kBegin) != std::string_view::npos; }

/// The record names the algorithm of RSA keys, which PKCS #8 does not.
void adopt_algorithm(const KeyRecord& record, PrivateNumbers& numbers) noexcept {
  const std::uint8_t algorithm = record.rdata[3];
  if (numbers.algorithm == 8 && algorithm == 10) numbers.algorithm = algorithm;
}

Result<ZoneKey> joined(const KeyFileText& file, const PrivateNumbers& numbers,
                       std::optional<KeyRecord> record) {
  auto key = SigningKey::make(numbers, record ? record->flags : kUsualKeyFlags);
  if (!key) return fault_of(file, key.error().text, key.error().code);
  if (record && record->rdata != key->dnskey())
    return fault_of(file, "the key does not match its DNSKEY record");
  return ZoneKey{std::move(*key), std::move(record)};
}

// Files -----------------------------------------------------------------------------------------

struct KeyPaths {
  std::string secret;
  std::string record;  ///< empty: there is none
};

bool is_there(const std::string& path) noexcept { return ::access(path.c_str(), F_OK) == 0; }

/// "K…+013+12345", as BIND's and ldns's tools name keys.
bool has_foreign_name(std::string_view stem) noexcept {
  constexpr std::size_t kTail = 10;  // of "+013+12345"
  stem.remove_prefix(std::min(stem.rfind('/') + 1, stem.size()));
  if (!stem.starts_with('K') || stem.size() <= kTail) return false;
  const std::string_view tail = stem.substr(stem.size() - kTail);
  return tail[0] == '+' && tail[4] == '+' && parse_decimal(tail.substr(1, 3), 255) &&
         parse_decimal(tail.substr(5), UINT16_MAX);
}

KeyPaths paths_of(const std::string& path) {
  constexpr std::string_view kSecret = ".private", kRecord = ".key";
  std::string stem = path;
  if (path.ends_with(kSecret))
    stem.resize(path.size() - kSecret.size());
  else if (path.ends_with(kRecord))
    stem.resize(path.size() - kRecord.size());
  else if (is_there(path) || !is_there(path + std::string(kSecret)))
    return {path, {}};
  KeyPaths paths{stem + std::string(kSecret), stem + std::string(kRecord)};
  // PowerDNS's export has no record; a key of BIND without its own is half a key.
  if (!has_foreign_name(stem) && !is_there(paths.record)) paths.record.clear();
  return paths;
}

/// The text of a key file. The memory is taken once: growth would leave copies behind.
Result<std::string> read_text(const std::string& path, bool is_secret) {
  const auto fd = open_to_read(path);
  if (!fd) return pass(fd);
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0) return fail_errno("fstat " + path);
  if (!S_ISREG(status.st_mode)) return fail(Errc::kInvalid, "{}: not a regular file", path);
  if (is_secret)
    if (auto fits = check_key_file_mode(status.st_mode, path); !fits) return pass(fits);
  if (static_cast<std::uint64_t>(status.st_size) > kMaxKeyFileBytes)
    return fail(Errc::kInvalid, "{}: too large for a key file", path);
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const auto got = ::read(fd->get(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read " + path);
    if (got == 0) break;  // cut meanwhile
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

}  // namespace

Status check_key_file_mode(std::uint32_t mode, std::string_view path) {
  if ((mode & (S_IWGRP | S_IRWXO)) == 0) return {};
  return fail(Errc::kDenied,
              "{}: users beside its owner have rights to the key ({:03o}): 'chmod 600'", path,
              mode & 0777U);
}

Result<ZoneKey> parse_key_file(const KeyFileText& file, const std::optional<KeyFileText>& record) {
  const WipeFreed wipe_freed;
  std::optional<KeyRecord> beside;
  if (record) {
    auto parsed = parse_record_file(*record);
    if (!parsed) return pass(parsed);
    beside = std::move(*parsed);
  }
  if (is_pem(file.text)) {
    auto pem = parse_pem(file);
    if (!pem) return pass(pem);
    if (beside) pem->record = std::move(beside);
    if (pem->record) adopt_algorithm(*pem->record, pem->numbers);
    return joined(file, pem->numbers, std::move(pem->record));
  }
  if (file.text.find(kFormat) == std::string_view::npos)
    return fault_of(file, "not a key file: neither PEM nor Private-key-format");
  auto numbers = parse_private_format(file);
  if (!numbers) return pass(numbers);
  if (const auto missing = missing_field(*numbers); !missing.empty())
    return fault_of(file, fmt::format("no field {}", missing));
  return joined(file, *numbers, std::move(beside));
}

Result<ZoneKey> read_key_file(const std::string& path) {
  const WipeFreed wipe_freed;
  const KeyPaths paths = paths_of(path);
  const auto text = read_text(paths.secret, true);
  if (!text) return pass(text);
  if (paths.record.empty()) return parse_key_file({*text, paths.secret}, std::nullopt);
  const auto record = read_text(paths.record, false);
  if (!record) return pass(record);
  return parse_key_file({*text, paths.secret}, KeyFileText{*record, paths.record});
}

Result<std::string> key_file_text(const SigningKey& key, NameView zone) {
  auto pem = key.pkcs8_pem();
  if (!pem) return pass(pem);
  const std::string record = fmt::format("{} IN DNSKEY {}\n", to_text(Name(zone).folded()),
                                         rdata_to_text(RRType::kDNSKEY, key.dnskey()));
  std::string text;  // no format with the key: fmt has buffers that nobody overwrites
  text.reserve(record.size() + pem->size());
  return text.append(record).append(*pem);
}

std::string key_file_stem(const SigningKey& key, NameView zone) {
  std::string stem = "K";
  for (const char c : to_text(Name(zone).folded())) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (is_plain)
      stem += c;
    else
      stem += fmt::format("%{:02X}", static_cast<std::uint8_t>(c));
  }
  return stem + fmt::format("+{:03}+{:05}", key.algorithm(), key.tag());
}

}  // namespace pando::dns
