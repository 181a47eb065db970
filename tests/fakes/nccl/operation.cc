// Operations: in the order they were launched, compared between ranks, in rounds over pieces.
#include <algorithm>
#include <cstring>

#include "tests/fakes/nccl/comm.h"
#include "tests/fakes/nccl/element.h"
#include "tests/fakes/nccl/settings.h"
#include "tests/fakes/nccl/waits.h"

namespace troupe::fakes {
namespace {

using train::NcclResult;

/// A death is seen where the transport reports it (sockets), or where this test's abort unmaps.
bool WatchesDeaths() { return CurrentSettings().At(Place::kPeer, 0).action != Action::kNone; }

End AfterWait(ncclComm* comm, End end) {
  if (end != End::kPeerGone) return end;
  const int lost = comm->segment->FirstLost();
  if (CurrentSettings().At(Place::kPeer, 0).action == Action::kUnmaps &&
      comm->segment->of(lost).state.load() == RankState::kAborted)
    FatalViolation("N12 nobody frees what a peer's kernel reads",
                   "rank " + std::to_string(lost) + " aborted while " + NameOf(comm) +
                       " was in an operation and neither revoked nor aborted");
  return end;
}

/// A barrier of all ranks, as one step of an operation.
End Round(ncclComm* comm) {
  Segment& segment = *comm->segment;
  const auto mine = segment.mine().rounds.fetch_add(1) + 1;
  segment.Changed();
  const auto end = segment.Wait(
      [&] {
        for (int rank = 0; rank < comm->size; ++rank)
          if (segment.of(rank).rounds.load() < mine) return false;
        return true;
      },
      comm->stop, WatchesDeaths());
  return AfterWait(comm, end);
}

std::string Described(const Posted& posted, int rank) {
  return "rank " + std::to_string(rank) + ": " + NameOf(posted.kind) + " " +
         std::to_string(posted.count) + " elements of type " +
         std::to_string(static_cast<int>(posted.type)) + ", op " +
         std::to_string(static_cast<int>(posted.op)) + ", root " + std::to_string(posted.root);
}

bool Agree(const Posted& a, const Posted& b) {
  return a.kind == b.kind && a.type == b.type && a.op == b.op && a.root == b.root &&
         a.count == b.count;
}

/// All ranks say what they begin; a difference is what hangs or corrupts with the real library.
End Compare(ncclComm* comm, const Call& call, std::uint64_t number) {
  Segment& segment = *comm->segment;
  segment.mine().posted = {number, call.kind, call.type, call.op, call.root, call.count};
  if (const auto end = Round(comm); end != End::kDone) return end;
  for (int rank = 0; rank < comm->size; ++rank)
    if (!Agree(segment.of(rank).posted, segment.mine().posted))
      FatalViolation("N8 all ranks call the same",
                     "operation " + std::to_string(number) +
                         " of a communicator: " + Described(segment.mine().posted, comm->rank) +
                         "; " + Described(segment.of(rank).posted, rank));
  return Round(comm);
}

/// How many rounds of pieces there are, and which block of whose buffer each one is about.
struct Plan {
  int blocks;        // outer loop: of `send`, by whom they are for, or of `recv`
  bool send_blocks;  // this rank's send buffer has a block for each rank
  bool recv_blocks;  // true if its receive buffer has a block for each rank
  bool all_send, all_receive;
  bool reduces;
};

Plan PlanOf(const ncclComm* comm, Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return {1, false, false, true, true, true};
    case Kind::kReduce:
      return {1, false, false, true, false, true};
    case Kind::kBroadcast:
      return {1, false, false, false, true, false};
    case Kind::kAllGather:
      return {1, false, true, true, true, false};
    case Kind::kReduceScatter:
      return {comm->size, true, false, true, false, true};
    default:
      return {comm->size, true, true, true, false, false};  // all-to-all
  }
}

void Receive(ncclComm* comm, const Call& call, const Plan& plan, std::size_t at,
             std::size_t count) {
  const std::size_t width = WidthOf(call.type);
  char* to = static_cast<char*>(call.recv);
  if (plan.reduces) {
    const char* in[kRanksMax];
    for (int rank = 0; rank < comm->size; ++rank) in[rank] = comm->segment->piece(rank);
    return ReduceRanks(to + at * width, in, comm->size, count, call.type, call.op);
  }
  for (int rank = 0; rank < comm->size; ++rank) {
    if (!plan.recv_blocks && rank != call.root) continue;
    const std::size_t block = plan.recv_blocks ? static_cast<std::size_t>(rank) * call.count : 0;
    std::memcpy(to + (block + at) * width, comm->segment->piece(rank), count * width);
  }
}

/// Puts the call's work onto the stream's thread, once it is this operation's turn.
struct Operation {
  ncclComm* comm;
  std::vector<Call> calls;
  std::uint64_t number;  // number within the communicator

  void Run() {
    {
      std::unique_lock lock(comm->mutex);
      comm->changed.wait(lock, [this] { return comm->ended + 1 == number; });
    }
    if (!comm->stop && Perform() != End::kDone && !comm->stop) {
      if (CurrentSettings().At(Place::kPeer, 0).action == Action::kError) {
        SetLastError("connection closed by remote peer");
        comm->async = NcclResult::kRemoteError;
      }
      WaitStop(comm);  // the kernel spins until the abort flag is set
    }
    std::lock_guard lock(comm->mutex);
    comm->ended = number;
    comm->changed.notify_all();
  }

 private:
  End Perform() {
    static std::atomic<std::uint64_t> passages{0};
    const auto fault = CurrentSettings().At(Place::kOperation, ++passages);
    if (fault.action == Action::kHang) return End::kPeerGone;
    if (fault.action == Action::kSlow) WaitMilliseconds(comm, fault.milliseconds);
    if (fault.action == Action::kError) {
      SetLastError("injected: connection closed by remote peer");
      comm->async = NcclResult::kRemoteError;
      return End::kPeerGone;
    }
    std::vector<Call> mail;
    for (const Call& call : calls) {
      if (IsMail(call.kind)) {
        mail.push_back(call);
      } else if (const auto end = RunCollective(comm, call, number); end != End::kDone) {
        return end;
      }
    }
    return mail.empty() ? End::kDone : RunMail(comm, mail, number);
  }
};

/// A send or receive on its way; true once it moved.
struct Exchange {
  const Call* call;
  std::size_t done = 0;
  bool begun = false;

  bool Finished() const { return begun && done == call->count * WidthOf(call->type); }
  bool Step(ncclComm* comm, std::uint64_t number) {
    const bool sends = call->kind == Kind::kSend;
    const int from = sends ? comm->rank : call->root, to = sends ? call->root : comm->rank;
    Mail& mail = comm->segment->shared().mails[from][to];
    if (Finished() || (mail.full.load() != 0) == sends) return false;
    const std::size_t bytes = call->count * WidthOf(call->type);
    if (sends) {
      mail.bytes = std::min(kMailBytes, bytes - done);
      mail.posted = {number, call->kind, call->type, {}, 0, call->count};
      std::memcpy(comm->segment->mail(from, to), static_cast<const char*>(call->send) + done,
                  mail.bytes);
    } else {
      if (mail.posted.count != call->count || mail.posted.type != call->type)
        FatalViolation("N8 all ranks call the same",
                       Described(mail.posted, from) + "; " + NameOf(comm) + " receives " +
                           std::to_string(call->count) + " elements of type " +
                           std::to_string(static_cast<int>(call->type)));
      std::memcpy(static_cast<char*>(call->recv) + done, comm->segment->mail(from, to), mail.bytes);
    }
    done += mail.bytes;
    begun = true;
    mail.full = sends ? 1 : 0;
    comm->segment->Changed();
    return true;
  }
};

}  // namespace

const char* NameOf(Kind kind) {
  constexpr const char* names[] = {"AllReduce",     "Broadcast", "Reduce", "AllGather",
                                   "ReduceScatter", "AlltoAll",  "Send",   "Recv"};
  return names[static_cast<int>(kind)];
}

bool IsMail(Kind kind) { return kind == Kind::kSend || kind == Kind::kRecv; }

End RunCollective(ncclComm* comm, const Call& call, std::uint64_t number) {
  if (const auto end = Compare(comm, call, number); end != End::kDone) return end;
  const Plan plan = PlanOf(comm, call.kind);
  const std::size_t width = WidthOf(call.type), step = kPieceBytes / width;
  for (int block = 0; block < plan.blocks; ++block)
    for (std::size_t at = 0; at < call.count; at += step) {
      const std::size_t count = std::min(step, call.count - at);
      if (plan.all_send || comm->rank == call.root) {
        const std::size_t from =
            (plan.send_blocks ? static_cast<std::size_t>(block) * call.count : 0) + at;
        std::memcpy(comm->segment->piece(comm->rank),
                    static_cast<const char*>(call.send) + from * width, count * width);
      }
      if (const auto end = Round(comm); end != End::kDone) return end;
      const bool receives =
          plan.all_receive || (plan.blocks == 1 ? comm->rank == call.root : comm->rank == block);
      if (receives) Receive(comm, call, plan, at, count);
      if (const auto end = Round(comm); end != End::kDone) return end;
    }
  return End::kDone;
}

End RunMail(ncclComm* comm, const std::vector<Call>& calls, std::uint64_t number) {
  std::vector<Exchange> exchanges;
  for (const Call& call : calls) exchanges.push_back({&call});
  const auto finished = [&] {
    return std::all_of(exchanges.begin(), exchanges.end(),
                       [](const Exchange& exchange) { return exchange.Finished(); });
  };
  while (!finished()) {
    const auto progress = [&] {
      bool moved = false;
      for (std::size_t i = 0; i < exchanges.size(); ++i) {
        // The earlier of two messages to one peer goes first.
        const bool waits = std::any_of(
            exchanges.begin(), exchanges.begin() + static_cast<std::ptrdiff_t>(i),
            [&](const Exchange& before) {
              return !before.Finished() && before.call->kind == exchanges[i].call->kind &&
                     before.call->root == exchanges[i].call->root;
            });
        moved |= !waits && exchanges[i].Step(comm, number);
      }
      return moved;
    };
    const auto end = AfterWait(comm, comm->segment->Wait(progress, comm->stop, WatchesDeaths()));
    if (end != End::kDone) return end;
  }
  return End::kDone;
}

void Launch(ncclComm* comm, std::vector<Call> calls, train::CudaStream stream) {
  Operation operation{comm, std::move(calls), 0};
  {
    std::lock_guard lock(comm->mutex);
    operation.number = ++comm->launched;
  }
  OntoStream(stream, [operation]() mutable { operation.Run(); });
}

}  // namespace troupe::fakes
