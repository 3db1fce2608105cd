#include "results/sweep/slurm.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <thread>

#include "results/sweep/journal.hpp"
#include "results/sweep/run_sweep.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/hash.hpp"
#include "sim/base/process.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::sweep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string quoted(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + quoted(word);
  return out;
}

ProcessEnd ask(const std::vector<std::string>& command) {
  try {
    return run_process(command);
  } catch (const ProgramNotFound&) {
    throw EnvironmentError(fmt::format(
        "--launch slurm needs {}, which is not on the PATH: run it where Slurm's commands are",
        command.front()));
  }
}

std::string submitted(std::vector<std::string> command) {
  command.insert(command.begin(), {"sbatch", "--parsable"});
  const ProcessEnd answer = ask(command);
  std::string_view id;
  for (std::string_view rest = answer.out; !rest.empty();) id = take_line(rest);
  if (!answer.ok() || id.empty() || id.find_first_of("0123456789") != 0)
    throw EnvironmentError("sbatch refused the sweep: " + answer.err + answer.out);
  return std::string(id.substr(0, id.find(';')));  // "ID;cluster"
}

// Null if Slurm does not answer.
std::optional<bool> in_queue(const std::string& job) {
  const ProcessEnd answer = ask({"squeue", "--noheader", "--format=%T", "--jobs=" + job});
  if (answer.ok()) return !answer.out.empty();
  if (answer.err.find("Invalid job id") != std::string::npos) return false;
  return std::nullopt;
}

// "" for a file that is not there.
std::string contents(const fs::path& file) {
  std::error_code error;
  return fs::exists(file, error) ? read_file(file, kLargeFile) : "";
}

std::string end_of(const fs::path& log) {
  const std::string text = contents(log);
  constexpr std::size_t kMost = 600;
  return text.size() > kMost ? "..." + text.substr(text.size() - kMost) : text;
}

// The directory and what is in it.
class Place {
 public:
  explicit Place(const SlurmSweep& sweep) : sweep_(sweep), all_(fs::absolute(sweep.directory)) {}

  fs::path slurm() const { return all_ / "slurm"; }
  fs::path shard(std::size_t i) const { return shard_directory(all_, {i, sweep_.shards}); }
  fs::path jobs_file() const { return slurm() / "jobs"; }

  std::string shard_script() const {
    std::vector<std::string> command{fs::read_symlink("/proc/self/exe").string(), "sweep"};
    command.insert(command.end(), sweep_.arguments.begin(), sweep_.arguments.end());
    command.insert(command.end(), {"--threads", std::to_string(sweep_.threads)});
    return fmt::format(
        "#!/bin/sh\n"
        "# One shard of a sweep. A requeued task continues where it stopped.\n"
        "i=$SLURM_ARRAY_TASK_ID\n"
        "{} --shard \"$i/{}\" --out {} >/dev/null &&\n"
        "  touch {}/finished-\"$SLURM_ARRAY_JOB_ID-$i\"\n",
        quoted(command), sweep_.shards, quoted(all_.string()), quoted(slurm().string()));
  }

  std::string merge_script() const {
    std::vector<std::string> command{fs::read_symlink("/proc/self/exe").string(), "merge"};
    for (std::size_t i = 1; i <= sweep_.shards; ++i) command.push_back(shard(i).string());
    command.insert(command.end(), {"--out", all_.string()});
    return fmt::format(
        "#!/bin/sh\n# Joins the shards.\n{} &&\n  touch {}/merged-\"$SLURM_JOB_ID\"\n",
        quoted(command), quoted(slurm().string()));
  }

  std::vector<std::string> sbatch_options() const {
    std::vector<std::string> out{"--job-name=mllmsim-sweep", "--ntasks=1", "--open-mode=append",
                                 "--chdir=" + fs::current_path().string()};
    if (!sweep_.partition.empty()) out.push_back("--partition=" + sweep_.partition);
    out.insert(out.end(), sweep_.options.begin(), sweep_.options.end());
    return out;
  }

  bool finished(const SlurmJobs& jobs, std::size_t i) const {
    std::error_code error;
    return fs::exists(slurm() / fmt::format("finished-{}-{}", jobs.array, i), error);
  }
  bool merged(const SlurmJobs& jobs) const {
    std::error_code error;
    return fs::exists(slurm() / ("merged-" + jobs.merge), error);
  }

  std::size_t points_done() const {
    std::size_t done = 0;
    for (std::size_t i = 1; i <= sweep_.shards; ++i) done += journal_records(shard(i));
    return std::min(done, sweep_.points);
  }

  std::string why_failed(const SlurmJobs& jobs) const {
    for (std::size_t i = 1; i <= sweep_.shards; ++i)
      if (!finished(jobs, i))
        return fmt::format("shard {} of {} did not finish: {}", i, sweep_.shards,
                           end_of(slurm() / fmt::format("shard-{}_{}.log", jobs.array, i)));
    return "the shards could not be joined: " +
           end_of(slurm() / fmt::format("merge-{}.log", jobs.merge));
  }

 private:
  const SlurmSweep& sweep_;
  fs::path all_;
};

// Jobs of an earlier call that are still there.
std::optional<SlurmJobs> running(const Place& place, const std::string& hash) {
  std::istringstream in(contents(place.jobs_file()));
  SlurmJobs jobs;
  std::string its_hash;
  if (!(in >> jobs.array >> jobs.merge >> its_hash)) return std::nullopt;
  if (!in_queue(jobs.array).value_or(true) && !in_queue(jobs.merge).value_or(true))
    return std::nullopt;
  if (its_hash != hash)
    throw EnvironmentError(
        fmt::format("another sweep runs in this directory as Slurm jobs {} and {}; wait for it, "
                    "stop it (scancel {} {}), or give --out another directory",
                    jobs.array, jobs.merge, jobs.array, jobs.merge));
  return jobs;
}

}  // namespace

SlurmJobs submit(const SlurmSweep& sweep) {
  const Place place(sweep);
  const std::string shard = place.shard_script(), merge = place.merge_script();
  const std::string hash = hash_text(shard + merge);
  if (const auto jobs = running(place, hash)) return *jobs;
  make_directories(place.slurm());
  for (std::size_t i = 1; i <= sweep.shards; ++i) make_directories(place.shard(i));
  write_file_atomically(place.slurm() / "shard.sh", shard);
  write_file_atomically(place.slurm() / "merge.sh", merge);

  SlurmJobs jobs;
  jobs.submitted = true;
  std::vector<std::string> command = place.sbatch_options();
  command.insert(command.end(), {fmt::format("--array=1-{}", sweep.shards), "--requeue",
                                 fmt::format("--cpus-per-task={}", sweep.threads),
                                 "--output=" + (place.slurm() / "shard-%A_%a.log").string(),
                                 (place.slurm() / "shard.sh").string()});
  jobs.array = submitted(command);
  command = place.sbatch_options();
  command.insert(command.end(), {"--dependency=afterok:" + jobs.array, "--kill-on-invalid-dep=yes",
                                 "--output=" + (place.slurm() / "merge-%j.log").string(),
                                 (place.slurm() / "merge.sh").string()});
  jobs.merge = submitted(command);
  write_file_atomically(place.jobs_file(), fmt::format("{} {} {}\n", jobs.array, jobs.merge, hash));
  return jobs;
}

bool wait_for(const SlurmSweep& sweep, const SlurmJobs& jobs, Progress& progress,
              const std::function<bool()>& stop) {
  using namespace std::chrono_literals;
  constexpr std::chrono::milliseconds kLook = 200ms, kAsk = 2s, kPatience = 300s;
  const Place place(sweep);
  progress.begin(sweep.points);
  auto asked = Clock::now(), answered = asked;
  while (!stop()) {
    progress.set(place.points_done());
    if (place.merged(jobs)) {
      progress.end();
      return true;
    }
    if (Clock::now() - asked > kAsk) {
      asked = Clock::now();
      const auto array = in_queue(jobs.array), merge = in_queue(jobs.merge);
      if (array && merge) answered = asked;
      if (asked - answered > kPatience)
        throw EnvironmentError("Slurm does not answer; the same command waits again");
      // A shared directory may show the last file later than Slurm the end of its job.
      if (array == false && merge == false) {
        std::this_thread::sleep_for(kAsk);
        if (place.merged(jobs)) continue;
        progress.end();
        throw EnvironmentError(place.why_failed(jobs) +
                               "\nthe same command continues with what is missing");
      }
    }
    std::this_thread::sleep_for(kLook);
  }
  progress.end();
  return false;
}

}  // namespace mllmsim::sweep
