#include "manager/workers/transfer_signer.h"

#include "dns/message/message.h"

namespace pando::manager {

namespace {

/// The header of `message` with `rcode` and the question, nothing else.
Bytes error_response(const Bytes& message, dns::Rcode rcode) {
  dns::MessageReader reader(message);
  auto header = reader.header();
  auto question = reader.question();
  if (!header || !question) return {};
  Bytes space(512);
  dns::MessageWriter writer(space, space.size());
  header->aa = false;
  writer.put_header(*header);
  if (!writer.put_question(question->name, question->type, question->rr_class)) return {};
  writer.set_rcode(rcode);
  space.resize(writer.finish().size());
  return space;
}

}  // namespace

Bytes TransferSigner::sign(ipc::SignTransfer&& request, std::uint64_t now) {
  if (!request.request.empty()) return begin(request, now);
  const auto found = streams_.find(request.stream);
  if (found == streams_.end()) return {};
  const bool good = found->second.session.sign(request.message, now).has_value();
  if (request.last || !good) streams_.erase(found);
  return good ? std::move(request.message) : Bytes();
}

Bytes TransferSigner::begin(ipc::SignTransfer& request, std::uint64_t now) {
  if (streams_.size() >= kMaxStreams || streams_.contains(request.stream)) return {};
  const auto keys = keyring_();
  auto record = dns::find_tsig(request.request);
  if (!keys || !record || !*record) return {};
  const auto verdict = dns::TsigSession::verify_request(request.request, **record, *keys, now);
  auto session = dns::TsigSession::for_response(verdict);
  Bytes response = verdict.rcode == dns::Rcode::kNoError
                       ? std::move(request.message)
                       : error_response(request.message, verdict.rcode);
  if (response.empty() || !session.sign(response, now)) return {};
  if (verdict.rcode == dns::Rcode::kNoError && !request.last)
    streams_.emplace(request.stream, Stream{keys, std::move(session)});
  return response;
}

}  // namespace pando::manager
