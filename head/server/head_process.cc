#include "head/server/head_process.h"

#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "head/journal/sqlite_archive.h"
#include "head/journal/sqlite_journal.h"
#include "head/journal/state_lock.h"
#include "head/server/archive_link.h"
#include "head/server/cluster_folder.h"
#include "head/server/net_token_mint.h"
#include "head/server/server.h"
#include "runtime/async/loop_thread.h"
#include "runtime/async/os_random.h"
#include "runtime/async/real_clock.h"
#include "runtime/base/log.h"
#include "runtime/base/test_limit.h"
#include "runtime/net/files.h"
#include "runtime/net/run_secret.h"
#include "runtime/os/directory.h"
#include "runtime/os/host.h"

namespace troupe::head {
namespace {

namespace asio = boost::asio;

void Tell(int fd, const std::string& line) {
  if (fd < 0) return;
  std::size_t at = 0;
  while (at < line.size()) {
    const ssize_t n = write(fd, line.data() + at, line.size() - at);
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  close(fd);
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "head";
  return name.data();
}

// Good as long as the run: its head is not started again.
wire::TokenWritten TokenOfRun(const net::Token& token, std::uint64_t now_us) {
  wire::TokenWritten written;
  written.id = token.id;
  written.role = token.role;
  written.key = std::string(net::TokenKey(token).Reveal());
  written.created_us = now_us;
  written.expires_us = now_us + 3650 * net::kTokenLifetimeUs;
  written.note = "of the run's secret";
  return written;
}

class HeadProcess {
 public:
  explicit HeadProcess(const HeadOptions& options) : options_(options), signals_(loop_) {}

  Status Prepare() {
    // Before any thread is made: all of them are to have these blocked or handled.
    signals_.add(SIGTERM);
    signals_.add(SIGINT);
    std::signal(SIGPIPE, SIG_IGN);
    FolderOptions folder;
    if (!options_.run_secret_file.empty()) {
      TROUPE_ASSIGN(const Secret secret, net::ReadSecretFile(options_.run_secret_file));
      StatusOr<net::RunSecret> run = net::DeriveRun(secret, options_.run);
      if (!run.ok())
        return MakeError(ErrorCode::kInvalid,
                         options_.run_secret_file + ": " + MessageOf(run.status()));
      run_ = *std::move(run);
      folder.authority_seed = run_->authority_seed;
    }
    folder.state_dir = options_.state_dir;
    folder.home = options_.home;
    folder.cluster = options_.cluster;
    TROUPE_ASSIGN(ClusterFolder opened, OpenClusterFolder(folder, clock_.WallTimeUs()));
    folder_.emplace(std::move(opened));
    TROUPE_ASSIGN(const std::uint64_t life_us, CertificateLifeUs());
    folder_->authority.set_node_lifetime_us(life_us);
    TROUPE_ASSIGN(StateLock lock, StateLock::Take(folder_->head));
    lock_.emplace(std::move(lock));
    TROUPE_TRY(OpenJournal());
    return StartServer();
  }

  Status Run() {
    loop_.run();
    server_.reset();
    return end_;
  }

 private:
  StatusOr<std::uint64_t> CertificateLifeUs() const {
    constexpr double kDayUs = 24.0 * 3600 * 1e6;
    const double life_us = options_.certificate_days * kDayUs;
    if (life_us >= 5e6 && options_.certificate_days <= 3650)
      return static_cast<std::uint64_t>(life_us);
    return MakeError(ErrorCode::kInvalid, "--certificate-days: from 5 seconds to 3650 days, not " +
                                              std::to_string(options_.certificate_days));
  }

  StatusOr<Duration> KeepAfter() const {
    if (options_.keep_hours >= 0 && options_.keep_hours <= 8760) {
      return std::chrono::duration_cast<Duration>(
          std::chrono::duration<double, std::ratio<3600>>(options_.keep_hours));
    }
    return MakeError(ErrorCode::kInvalid, "--keep-place-after: from 0 to 8760 hours, not " +
                                              std::to_string(options_.keep_hours));
  }

  StatusOr<Duration> IdleGpuAfter() const {
    if (options_.idle_gpu_minutes >= 0 && options_.idle_gpu_minutes <= 525'600) {
      return std::chrono::duration_cast<Duration>(
          std::chrono::duration<double, std::ratio<60>>(options_.idle_gpu_minutes));
    }
    return MakeError(ErrorCode::kInvalid, "--idle-gpu-after: from 0 to 525600 minutes, not " +
                                              std::to_string(options_.idle_gpu_minutes));
  }

  SqliteOptions OptionsOfSqlite() const {
    SqliteOptions sqlite;
    sqlite.folder = folder_->head;
    sqlite.disposable = options_.embedded;
    sqlite.seal =
        std::make_shared<EnvironmentSeal>(folder_->authority.Derived("variables in the journal"));
    return sqlite;
  }

  Status OpenJournal() {
    const SqliteOptions sqlite = OptionsOfSqlite();
    TROUPE_ASSIGN(journal_, SqliteJournal::Open(sqlite));
    TROUPE_ASSIGN(std::unique_ptr<SqliteArchive> archive, SqliteArchive::Open(sqlite));
    CoreOptions core;
    core.archives = true;
    core.moved = MovedSince(*archive, core.repeats_us);
    over_.archive.emplace(loop_.get_executor(), std::move(archive));
    over_.job_logs.emplace(loop_.get_executor(), folder_->head);
    core.ended_max = options_.ended_max;
    core.cluster = folder_->authority.cluster_id();
    core.pid = getpid();
    core.boot_id = os::BootId();
    core.user = os::UserName();
    if (options_.preemption != "never" && options_.preemption != "restartable") {
      return MakeError(ErrorCode::kInvalid,
                       "--preemption: never or restartable, not " + options_.preemption);
    }
    if (options_.preemption == "restartable") core.preemption = Preemption::kRestartable;
    if (options_.infeasible != "refuse" && options_.infeasible != "wait") {
      return MakeError(ErrorCode::kInvalid,
                       "--infeasible: refuse or wait, not " + options_.infeasible);
    }
    core.infeasible_waits = options_.infeasible == "wait";
    TROUPE_ASSIGN(core.keep_after, KeepAfter());
    TROUPE_ASSIGN(core.idle_gpu_after, IdleGpuAfter());
    core.recreate_after = TestLimit("recreate_after", core.recreate_after);
    if (run_) {
      const std::uint64_t now_us = clock_.WallTimeUs();
      core.tokens = {TokenOfRun(run_->worker, now_us), TokenOfRun(run_->client, now_us)};
    }
    mint_.emplace(folder_->authority.key_hash(), random_);
    if (!options_.local_clients) {
      // Nobody could ask for the first one.
      TokenMint::Minted minted =
          mint_->Mint(wire::Role::kClient, clock_.WallTimeUs(), net::kTokenLifetimeUs, false);
      minted.record.note = "of this start of the head";
      client_token_ = std::move(minted.text);
      core.tokens.push_back(std::move(minted.record));
    }
    core_.emplace(std::move(core), Seams{random_, *mint_});
    std::uint64_t last = 0;
    TROUPE_TRY(journal_->Replay([&](const Row& row) {
      core_->Replay(row);
      // A snapshot's events share one number: however large it is, it is no reason for another one.
      if (row.sequence != last) ++replayed_;
      last = row.sequence;
    }));
    return NoteRestore();
  }

  /// `troupe journal restore` leaves a number above the incarnations of the head that was lost:
  /// nodes that have seen that head would take this one for a stale one.
  Status NoteRestore() {
    const std::string path = folder_->head + "/restored";
    std::ifstream file(path);
    if (!file) return absl::OkStatus();
    std::uint64_t seen = 0;
    if (!(file >> seen)) {
      return MakeError(ErrorCode::kInvalid,
                       path + " has no number in it: restore the backup again, with --replace");
    }
    core_->NoteIncarnation(seen);
    return absl::OkStatus();
  }

  Status StartServer() {
    const ClusterId cluster = folder_->authority.cluster_id();
    ServerOptions server{.handshakes = handshakes_.executor(), .http = &http_};
    TROUPE_ASSIGN(server.tcp, net::TcpAddress(options_.listen, options_.port));
    TROUPE_TRY(os::MakeSocketDirectory(options_.socket_dir));
    server.socket_path = options_.socket_dir + "/head-" + cluster.Short() + ".sock";
    server.host_name = HostName();
    server.local_clients = options_.local_clients;
    server.archive = &*over_.archive;
    server.job_logs = &*over_.job_logs;
    server.read_archive = ReaderOfArchive(OptionsOfSqlite());
    server.snapshot_every = options_.snapshot_every;
    server.replayed = replayed_;
    server.journal_folder = folder_->head;
    const std::string socket = server.socket_path;
    server_.emplace(loop_.get_executor(), clock_, random_, folder_->authority, *core_, *journal_,
                    std::move(server), [this](Status status) {
                      end_ = std::move(status);
                      loop_.stop();
                    });
    TROUPE_TRY(server_->Start());
    const std::string contact = ContactJson(cluster, server_->address(), getpid(), socket);
    TROUPE_TRY(net::ReplaceFile(folder_->path + "/head.json", contact, 0600));
    signals_.async_wait([this](const auto& error, int) {
      if (!error) server_->Stop();
    });
    if (options_.lifeline_fd >= 0) WatchLifeline();
    Log(LogLevel::kInfo, "head ready",
        {{"address", server_->address()},
         {"cluster", cluster.Hex()},
         {"incarnation", core_->state().incarnation},
         {"events", core_->last_sequence()}});
    Tell(options_.ready_fd, ContactJson(cluster, server_->address(), getpid(), socket,
                                        std::exchange(client_token_, {})));
    return absl::OkStatus();
  }

  void WatchLifeline() {
    lifeline_.emplace(loop_, options_.lifeline_fd);
    lifeline_->async_read_some(asio::buffer(lifeline_byte_),
                               [this](const auto& error, std::size_t) {
                                 if (error != asio::error::operation_aborted) server_->Stop();
                               });
  }

  const HeadOptions options_;
  async::RealClock clock_;
  async::OsRandom random_;
  async::LoopThread http_{"head-http"};  // before the loop, whose last words may be for it
  asio::io_context loop_{1};
  asio::signal_set signals_;
  async::LoopThread handshakes_{"head-tls"};
  std::optional<net::RunSecret> run_;
  std::optional<ClusterFolder> folder_;
  std::optional<StateLock> lock_;
  std::unique_ptr<SqliteJournal> journal_;
  std::uint64_t replayed_ = 0;  // rows, the snapshot as one
  std::optional<NetTokenMint> mint_;
  std::string client_token_;  // to be told once, to who started this head
  std::optional<HeadCore> core_;
  struct OfWhatIsOver {
    std::optional<ArchiveLink> archive;
    std::optional<JobLogLink> job_logs;
  };
  OfWhatIsOver over_;
  std::optional<Server> server_;
  std::optional<asio::posix::stream_descriptor> lifeline_;
  std::array<char, 1> lifeline_byte_{};
  Status end_;
};

}  // namespace

Status RunHead(const HeadOptions& options) {
  HeadProcess process(options);
  const Status ready = process.Prepare();
  if (!ready.ok()) {
    Tell(options.ready_fd, "{\"error\": \"" + JsonEscape(MessageOf(ready)) + "\", \"code\": " +
                               std::to_string(static_cast<int>(ErrorCodeOf(ready))) + "}\n");
    return ready;
  }
  return process.Run();
}

}  // namespace troupe::head
