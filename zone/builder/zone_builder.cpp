#include "dns/rdata/rdata.h"
#include "zone/builder/name_stream.h"
#include "zone/builder/name_writer.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/built.h"
#include "zone/draft/draft.h"
#include "zone/draft/name_rules.h"

namespace pando::zone {

struct ZoneBuilder::Impl {
  Impl(dns::NameView zone, shm::Transaction& transaction, const DataLimits& limits)
      : apex(zone),
        data(transaction),
        before(transaction.added_bytes()),
        writer(zone, transaction, limits),
        names(writer, transaction),
        nsec3(writer, transaction) {
    writer.built().spelling = apex;
  }

  Result<std::shared_ptr<BuiltZone>> finish();

  dns::Name apex;
  shm::Transaction& data;
  std::int64_t before;  // Transaction::added_bytes() without the zone
  NameWriter writer;
  NameStream names;
  NameStream nsec3;
  std::uint64_t records = 0;
  Status status;  // the reason why the build has failed
};

ZoneBuilder::ZoneBuilder(dns::NameView apex, shm::Transaction& transaction,
                         const DataLimits& limits)
    : impl_(std::make_unique<Impl>(apex, transaction, limits)) {}
ZoneBuilder::~ZoneBuilder() = default;
ZoneBuilder::ZoneBuilder(ZoneBuilder&&) noexcept = default;
ZoneBuilder& ZoneBuilder::operator=(ZoneBuilder&&) noexcept = default;

std::uint64_t ZoneBuilder::record_count() const noexcept { return impl_->records; }

void ZoneBuilder::share_from(std::uint64_t octets) noexcept { impl_->writer.share_from(octets); }

Status ZoneBuilder::add(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) {
  if (auto ok = check_record(impl_->apex, owner, type, rdata); !ok) return ok;
  if (type == dns::RRType::kSOA && owner == impl_->apex.view())
    impl_->writer.built().spelling = dns::Name(owner);
  ++impl_->records;
  // A full store is no fault of this record: finish() reports the error, once.
  if (!impl_->status) return {};
  NameStream& stream = belongs_to_nsec3(type, rdata) ? impl_->nsec3 : impl_->names;
  impl_->status = stream.add(relative_labels(owner, impl_->apex), type, ttl, rdata);
  return {};
}

Result<std::shared_ptr<BuiltZone>> ZoneBuilder::Impl::finish() {
  if (!status) return pass(status);
  auto names_root = names.finish();
  if (!names_root) return pass(names_root);
  if (writer.built().apex == 0)
    return fail(Errc::kInvalid, "{}: no SOA record", dns::to_text(apex));
  auto nsec3_root = nsec3.finish();
  if (!nsec3_root) return pass(nsec3_root);
  writer.built().names = *names_root;
  writer.built().nsec3 = *nsec3_root;
  writer.built().data_units = units_of(data.added_bytes() - before);
  return writer.take();
}

Result<std::shared_ptr<BuiltZone>> ZoneBuilder::finish() { return impl_->finish(); }

}  // namespace pando::zone
