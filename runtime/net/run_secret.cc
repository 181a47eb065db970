#include "runtime/net/run_secret.h"

#include <utility>

#include "runtime/net/digest.h"
#include "runtime/net/private_key.h"

namespace troupe::net {
namespace {

std::uint64_t NumberAt(std::string_view bytes, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return number;
}

class Derivation {
 public:
  Derivation(std::string_view secret, std::string_view run) : secret_(secret), run_(run) {}

  Secret Of(std::string_view what) const {
    return HkdfSha256(secret_, "troupe run v1", std::string(what) + "\n" + std::string(run_));
  }
  Token TokenOf(wire::Role role, const std::string& key_hash) const {
    const std::string name = wire::NameOf(role);
    const Secret id = Of("token id " + name);
    Token token;
    token.role = role;
    token.ca_key_hash = key_hash;
    token.id = TokenId(NumberAt(id.Reveal(), 0), NumberAt(id.Reveal(), 8));
    token.secret = Secret(std::string(Of("token secret " + name).Reveal().substr(0, 16)));
    return token;
  }

 private:
  const std::string_view secret_;
  const std::string_view run_;
};

}  // namespace

StatusOr<RunSecret> DeriveRun(const Secret& secret, std::string_view run) {
  if (secret.Reveal().size() != kRunSecretBytes) {
    return MakeError(ErrorCode::kInvalid, "a run's secret is 32 random bytes, not " +
                                              std::to_string(secret.Reveal().size()) +
                                              "\n  make one with: troupe run --make-secret FILE");
  }
  const Derivation derive(secret.Reveal(), run);
  RunSecret out;
  out.authority_seed = derive.Of("authority");
  TROUPE_ASSIGN(const PrivateKey key, PrivateKey::FromSeed(out.authority_seed.Reveal()));
  out.worker = derive.TokenOf(wire::Role::kWorker, key.PublicHash());
  out.client = derive.TokenOf(wire::Role::kClient, key.PublicHash());
  const Secret port = derive.Of("port");
  out.port = static_cast<std::uint16_t>(kRunPortFirst + NumberAt(port.Reveal(), 0) % kRunPortCount);
  return out;
}

}  // namespace troupe::net
