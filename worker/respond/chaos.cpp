#include "worker/respond/chaos.h"

#include <algorithm>
#include <string_view>

#include "worker/request/response_builder.h"

namespace pando::worker {

namespace {

using namespace std::string_view_literals;

bool name_is(const dns::Name& name, std::string_view wire) {
  return name == dns::NameView(reinterpret_cast<const std::uint8_t*>(wire.data()), wire.size());
}

/// The configured value that the question asks for; null when the question asks for none.
const std::string* value_for(const dns::Question& question, const zone::ServerSettings& settings) {
  if (question.type != dns::RRType::kTXT && question.type != dns::RRType::kANY) return nullptr;
  if (name_is(question.name, "\2id\6server\0"sv) || name_is(question.name, "\10hostname\4bind\0"sv))
    return &settings.identity;
  if (name_is(question.name, "\7version\4bind\0"sv) ||
      name_is(question.name, "\7version\6server\0"sv))
    return &settings.version;
  return nullptr;
}

}  // namespace

Outcome answer_chaos(RequestContext& context) {
  const std::string* value = value_for(context.request.question, *context.batch.settings);
  if (value == nullptr || value->empty())
    return respond_error(context, dns::Rcode::kRefused, Ede::kNotAuthoritative);
  constexpr std::size_t kMaxText = 255;  // RFC 1035 §3.3: a character-string
  const std::string_view text = std::string_view(*value).substr(0, kMaxText);
  Bytes rdata;
  rdata.push_back(static_cast<std::uint8_t>(text.size()));
  rdata.insert(rdata.end(), text.begin(), text.end());
  ResponseBuilder response(context, true, dns::Rcode::kNoError);
  dns::MessageWriter& writer = response.writer();
  if (!writer.put_record(dns::Section::kAnswer, writer.question_name(), dns::RRType::kTXT,
                         dns::RRClass::kCH, 0, rdata))
    writer.set_tc();
  return response.finish();
}

}  // namespace pando::worker
