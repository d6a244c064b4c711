#include "dns/rdata/rdata.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "dns/encoding.h"
#include "dns/rdata/rdata_field.h"
#include "dns/text.h"
#include "dns/wire_name.h"

namespace pando::dns {

namespace {

/// Adds the field's name to the error of its codec.
tl::unexpected<Error> name_field(const Field& field, Status& status) {
  return fail(status.error().code, "{}: {}", field.name, status.error().text);
}

/// WireReader of RDATA that a zone has already.
WireReader reader_of_stored(ByteView rdata) noexcept {
  WireReader wire{rdata};
  wire.is_stored = true;
  return wire;
}

Status check_fields(const RdataDescriptor& descriptor, WireReader wire) {
  for (const Field& field : descriptor.fields())
    if (auto status = field.codec->check(wire); !status) return name_field(field, status);
  if (wire.left() != 0) return fail(Errc::kInvalid, "{} octets too many", wire.left());
  return {};
}

/// Appends the name at `wire.at` of the message, expanded. The name must end inside the RDATA, but
/// its pointers may lead to any earlier place.
Status expand_field(WireReader& wire, Bytes& out) {
  std::uint8_t name[kMaxNameOctets];
  std::size_t size = 0;
  auto behind = expand_name(wire.data, wire.at, name, size);
  if (!behind) return pass(behind);
  wire.at = *behind;
  append(out, {name, size});
  return {};
}

/// `wire.data` is the message up to the end of the RDATA, so that no read goes past it.
Status expand_fields(const RdataDescriptor& descriptor, WireReader wire, Bytes& out) {
  for (const Field& field : descriptor.fields()) {
    const std::size_t start = wire.at;
    auto status = field.expands() ? expand_field(wire, out) : field.codec->check(wire);
    if (!status) return name_field(field, status);
    if (!field.expands()) append(out, wire.data.subspan(start, wire.at - start));
  }
  if (wire.left() != 0) return fail(Errc::kInvalid, "{} octets too many", wire.left());
  return {};
}

/// RFC 3597 §5: \# LENGTH HEX..., the first word already read.
Status read_generic(TextReader& text) {
  auto length = read_number(text, kMaxRdataOctets);
  if (!length) return fail(length.error().code, "length: {}", length.error().text);
  if (auto status = read_hex_rest(text, 0); !status) return status;
  if (text.written().size() != *length)
    return fail(Errc::kInvalid, "length says {} octets, there are {}", *length,
                text.written().size());
  return {};
}

Status read_fields(const RdataDescriptor& descriptor, TextReader& text) {
  for (const Field& field : descriptor.fields())
    if (auto status = field.codec->read(text); !status) return name_field(field, status);
  if (!text.at_end())
    return fail(Errc::kInvalid, "unexpected {} behind the last field",
                quote_for_message(text.peek()->text));
  if (text.written().size() > kMaxRdataOctets)
    return fail(Errc::kInvalid, "RDATA above {} octets", kMaxRdataOctets);
  return {};
}

Status read_any_form(RRType type, TextReader& text) {
  const Token* first = text.peek();
  const RdataDescriptor* descriptor = find_descriptor(type);
  if (first != nullptr && !first->quoted && first->text == "\\#") {
    text.step();
    if (auto status = read_generic(text); !status) return status;
    // RFC 3597 §5: the data of a known type must be valid in this form too.
    return descriptor == nullptr ? Status() : check_fields(*descriptor, {text.written()});
  }
  if (descriptor == nullptr) return fail(Errc::kInvalid, "must be in the form \\# LENGTH HEX");
  return read_fields(*descriptor, text);
}

bool print_fields(const RdataDescriptor& descriptor, ByteView rdata, std::string& text) {
  WireReader wire{rdata};
  for (const Field& field : descriptor.fields()) {
    if (!text.empty()) text += ' ';
    const std::size_t before = text.size();
    if (!field.codec->print(wire, text)) return false;
    if (text.size() == before && before != 0) text.pop_back();  // an absent field takes no blank
  }
  return true;
}

std::string print_generic(ByteView rdata) {
  std::string text = fmt::format("\\# {}", rdata.size());
  if (!rdata.empty()) text += ' ';
  append_hex(text, rdata);
  return text;
}

int compare_sizes(ByteView a, ByteView b) noexcept {
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

/// Walks RDATA in stretches that are either folded (names of the old types) or not. The octets
/// after a damaged field are one stretch without folding. The stretches depend on this RDATA
/// alone, so that each RDATA has its own sort key and the order also holds for damaged ones.
class Stretches {
 public:
  Stretches(const RdataDescriptor& descriptor, ByteView rdata)
      : fields_(descriptor.fields()), wire_(reader_of_stored(rdata)) {}

  /// Moves to the stretch with the octet at `at`, which must be inside of the RDATA.
  void reach(std::size_t at) noexcept {
    while (end_ <= at) next();
  }
  [[nodiscard]] std::size_t end() const noexcept { return end_; }
  [[nodiscard]] std::uint8_t octet(std::size_t at) const noexcept {
    return folds_ ? kFoldCase[wire_.data[at]] : wire_.data[at];
  }

 private:
  void next() noexcept {
    const bool valid = !fields_.empty() && fields_.front().codec->check(wire_).has_value();
    folds_ = valid && fields_.front().folds();
    end_ = valid ? wire_.at : wire_.data.size();
    fields_ = valid ? fields_.subspan(1) : std::span<const Field>();
  }

  std::span<const Field> fields_;
  WireReader wire_;
  std::size_t end_ = 0;
  bool folds_ = false;
};

int compare_folding(const RdataDescriptor& descriptor, ByteView a, ByteView b) noexcept {
  Stretches left(descriptor, a);
  Stretches right(descriptor, b);
  const std::size_t shorter = std::min(a.size(), b.size());
  for (std::size_t at = 0; at < shorter;) {
    left.reach(at);
    right.reach(at);
    for (const std::size_t end = std::min({left.end(), right.end(), shorter}); at < end; ++at)
      if (left.octet(at) != right.octet(at)) return left.octet(at) - right.octet(at);
  }
  return compare_sizes(a, b);
}

/// Splits RDATA text: blanks, line ends and parentheses separate words, ';' starts a comment.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> split() {
    std::vector<Token> tokens;
    while (skip_blanks()) {
      auto token = text_[at_] == '"' ? quoted() : plain();
      if (!token) return pass(token);
      tokens.push_back(*token);
    }
    return tokens;
  }

 private:
  static bool is_blank(char c) { return std::string_view(" \t\r\n()").find(c) != c_npos; }
  static constexpr auto c_npos = std::string_view::npos;

  bool skip_blanks() {
    while (at_ < text_.size() && (is_blank(text_[at_]) || text_[at_] == ';')) {
      if (text_[at_] == ';')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else
        ++at_;
    }
    return at_ < text_.size();
  }

  Result<Token> quoted() {
    const std::size_t start = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) return fail(Errc::kInvalid, "quote without an end");
    return Token{text_.substr(start, at_++ - start), true};
  }

  Result<Token> plain() {
    const std::size_t start = at_;
    while (at_ < text_.size() && !is_blank(text_[at_]) && text_[at_] != '"' && text_[at_] != ';')
      at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    return Token{text_.substr(start, at_ - start), false};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Status check_rdata(RRType type, ByteView rdata) {
  if (rdata.size() > kMaxRdataOctets)
    return fail(Errc::kInvalid, "RDATA above {} octets", kMaxRdataOctets);
  const RdataDescriptor* descriptor = find_descriptor(type);
  return descriptor == nullptr ? Status() : check_fields(*descriptor, {rdata});
}

Status check_stored_rdata(RRType type, ByteView rdata) {
  if (rdata.size() > kMaxRdataOctets)
    return fail(Errc::kInvalid, "RDATA above {} octets", kMaxRdataOctets);
  const RdataDescriptor* descriptor = find_descriptor(type);
  return descriptor == nullptr ? Status() : check_fields(*descriptor, reader_of_stored(rdata));
}

Status check_record_size(NameView owner, RRType type, ByteView rdata) {
  constexpr std::size_t kFieldsOctets = 10;  // type, class, TTL, length (RFC 1035 §4.1.3)
  const std::size_t octets = owner.size() + kFieldsOctets + rdata.size();
  if (octets <= kMaxRecordOctets) return {};
  return fail(Errc::kInvalid, "{} {}: record of {} octets, a message has room for {}",
              to_text(owner), to_text(type), octets, kMaxRecordOctets);
}

Status decompress_rdata(RRType type, ByteView message, std::size_t offset, std::size_t length,
                        Bytes& out) {
  if (offset > message.size() || length > message.size() - offset)
    return fail(Errc::kTruncated, "RDATA cut short");
  const RdataDescriptor* descriptor = find_descriptor(type);
  const ByteView rdata = message.subspan(offset, length);
  if (descriptor == nullptr || !descriptor->expands) {
    if (auto status = check_rdata(type, rdata); !status) return status;
    append(out, rdata);
    return {};
  }
  const std::size_t before = out.size();
  auto status = expand_fields(*descriptor, {message.first(offset + length), offset}, out);
  if (status && out.size() - before > kMaxRdataOctets)
    status = fail(Errc::kInvalid, "RDATA above {} octets", kMaxRdataOctets);
  if (!status) out.resize(before);
  return status;
}

Status rdata_from_text(RRType type, std::span<const Token> tokens, NameView origin, Bytes& out) {
  const std::size_t before = out.size();
  TextReader text(tokens, origin, out);
  auto status = read_any_form(type, text);
  if (!status) out.resize(before);
  return status;
}

Status rdata_from_text(RRType type, std::string_view text, NameView origin, Bytes& out) {
  auto tokens = Splitter(text).split();
  if (!tokens) return pass(tokens);
  return rdata_from_text(type, *tokens, origin, out);
}

std::string rdata_to_text(RRType type, ByteView rdata) {
  const RdataDescriptor* descriptor = find_descriptor(type);
  std::string text;
  if (descriptor != nullptr && check_fields(*descriptor, reader_of_stored(rdata)) &&
      print_fields(*descriptor, rdata, text))
    return text;
  return print_generic(rdata);
}

int compare_rdata_canonical(RRType type, ByteView a, ByteView b) noexcept {
  const RdataDescriptor* descriptor = find_descriptor(type);
  if (descriptor != nullptr && descriptor->folds) return compare_folding(*descriptor, a, b);
  return compare_bytes(a, b);
}

void append_rdata_canonical(RRType type, ByteView rdata, Bytes& out) {
  const RdataDescriptor* descriptor = find_descriptor(type);
  if (descriptor == nullptr || !descriptor->folds) return append(out, rdata);
  Stretches stretches(*descriptor, rdata);
  for (std::size_t at = 0; at < rdata.size(); ++at) {
    stretches.reach(at);
    out.push_back(stretches.octet(at));
  }
}

}  // namespace pando::dns
