#include "cost_models/fit/import_nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>

#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::fit {
namespace {

namespace json = boost::json;

enum class Test { none, all_gather, reduce_scatter, all_reduce, send_receive, other };

// Of a program or file name: "./build/all_reduce_perf", "a100_allreduce.log".
Test test_of(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(name.find_last_of('/') + 1))
    if (std::isalpha(static_cast<unsigned char>(c)))
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::array<std::pair<std::string_view, Test>, 11> kNames{{
      {"allgather", Test::all_gather},
      {"reducescatter", Test::reduce_scatter},
      {"allreduce", Test::all_reduce},
      {"sendrecv", Test::send_receive},
      {"alltoall", Test::other},
      {"broadcast", Test::other},
      {"hypercube", Test::other},
      {"gather", Test::other},
      {"scatter", Test::other},
      {"reduceperf", Test::other},
      {"reduce", Test::other},
  }};
  for (const auto& [text, test] : kNames)
    if (plain.find(text) != std::string::npos) return test;
  return Test::none;
}

// The operation a user names for files that do not.
Test given_test(const std::string& op) {
  if (op.empty()) return Test::none;
  const Test test = test_of(op);
  if (test == Test::none || test == Test::other)
    throw UserError(
        "command line", "--op",
        fmt::format("expected all_gather, reduce_scatter, all_reduce or sendrecv, found {}", op));
  return test;
}

// What a name says, or else what was given.
Test test_of(std::string_view name, Test given) {
  const Test test = test_of(name);
  return test == Test::none ? given : test;
}

struct Group {
  int ranks = 0;
  std::set<std::string> hosts;
};

// One result; ignores sizes of nothing and times that were not taken.
void add(RawData& raw, Test test, const Group& group, std::int64_t bytes, double us,
         const std::string& where) {
  if (bytes <= 0 || !(us > 0) || !std::isfinite(us) || test == Test::other) return;
  if (test == Test::none)
    throw UserError(where, "",
                    "neither the file nor its name says which operation this is: give --op");
  const auto nodes = static_cast<int>(group.hosts.size());
  if (group.ranks < 2 || nodes < 1)
    throw UserError(where, "", "a result before two \"# Rank\" lines");
  const Seconds time{us * 1e-6};
  if (test == Test::send_receive) {
    if (nodes == 1 || nodes == group.ranks)
      raw.p2p.push_back({{Bytes{bytes}, nodes == 1, 1}, time});
    return;
  }
  if (group.ranks % nodes != 0) throw UserError(where, "", "hosts with unequal numbers of ranks");
  const costs::CollectiveOp op = test == Test::all_gather ? costs::CollectiveOp::all_gather
                                 : test == Test::reduce_scatter
                                     ? costs::CollectiveOp::reduce_scatter
                                     : costs::CollectiveOp::all_reduce;
  raw.collectives.push_back({{op, Bytes{bytes}, {group.ranks, nodes, 1}}, time});
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

class TextLog {
 public:
  TextLog(RawData& raw, const std::string& file, Test given)
      : raw_(raw), test_(test_of(file, given)) {}

  void line(const std::string& text, const std::string& where) {
    const std::vector<std::string> w = words(text);
    if (w.empty()) return;
    if (w[0] == "#") return comment(text, w);
    // Anything that does not start with a size is talk of NCCL or of the launcher.
    const std::optional<std::int64_t> bytes = to_number<std::int64_t>(w[0]);
    if (!bytes || w.size() < 3 || !to_number<std::int64_t>(w[1])) return;
    if (out_of_place_ == 0) throw UserError(where, "", "a result before the line of column names");
    std::optional<double> us = time(w, out_of_place_, where);
    if (!us) us = time(w, in_place_, where);
    if (us) add(raw_, test_, group_, *bytes, *us, where);
  }

 private:
  void comment(const std::string& text, const std::vector<std::string>& w) {
    constexpr std::string_view kStart = "Collective test starting:";
    if (const auto at = text.find(kStart); at != std::string::npos) {
      test_ = test_of(text.substr(at + kStart.size()));
      begin();
    } else if (w.size() > 2 && w[1] == "Using" && w[2] == "devices") {
      begin();
    } else if (w.size() > 2 && w[1] == "Rank") {
      ++group_.ranks;
      const auto on = std::find(w.begin(), w.end(), "on");
      if (on != w.end() && on + 1 != w.end()) group_.hosts.insert(*(on + 1));
      const auto bracket = text.find("] ");
      if (raw_.header.gpu.empty() && bracket != std::string::npos)
        raw_.header.gpu = text.substr(bracket + 2);
    } else if (w.size() > 5 && w[1] == "size") {
      const auto is_time = [](const std::string& s) { return s == "time" || s == "cputime"; };
      const auto first = std::find_if(w.begin(), w.end(), is_time);
      const auto second = first == w.end() ? first : std::find_if(first + 1, w.end(), is_time);
      // The # is a word of its own here, not in the rows.
      out_of_place_ = first == w.end() ? 0 : static_cast<std::size_t>(first - w.begin()) - 1;
      in_place_ = second == w.end() ? 0 : static_cast<std::size_t>(second - w.begin()) - 1;
    }
  }

  void begin() {
    group_ = {};
    out_of_place_ = in_place_ = 0;
  }

  std::optional<double> time(const std::vector<std::string>& w, std::size_t column,
                             const std::string& where) const {
    if (column == 0) return std::nullopt;
    if (column >= w.size()) throw UserError(where, "", "the line ends before its time");
    if (w[column] == "N/A") return std::nullopt;
    const std::optional<double> us = to_number<double>(w[column]);
    if (!us) throw UserError(where, "time", "expected a number, found \"" + w[column] + "\"");
    return us;
  }

  RawData& raw_;
  Test test_;
  Group group_;
  std::size_t out_of_place_ = 0, in_place_ = 0;  // columns of the times; 0: not known
};

void parse_text(const std::string& text, const std::string& file, Test given, RawData& raw) {
  TextLog log(raw, file, given);
  std::string_view rest = text;
  for (int n = 1; !rest.empty(); ++n)
    log.line(std::string(take_line(rest)), fmt::format("{}:{}", file, n));
}

// "nan" and null stand for times that were not taken.
std::optional<double> json_time(const json::value& result, const char* place) {
  const json::value* part = result.get_object().if_contains(place);
  const json::object* fields = part ? part->if_object() : nullptr;
  const json::value* us = fields ? fields->if_contains("time") : nullptr;
  if (!us || !us->is_number()) return std::nullopt;
  return us->to_number<double>();
}

void parse_report(const std::string& text, const std::string& file, Test given, RawData& raw) {
  const json::value document = parse_json(text, file);
  JsonObject root(document, file);
  const json::value* args = document.get_object().if_contains("args");
  const bool named =
      args && args->is_array() && !args->get_array().empty() && args->get_array()[0].is_string();
  const Test test = test_of(named ? std::string(args->get_array()[0].get_string()) : file, given);

  // One device entry per process, which drives nthreads * ngpus of them.
  JsonObject config = root.object("config");
  Group group;
  const std::int64_t threads = config.integer("nthreads"), gpus = config.integer("ngpus");
  if (threads < 1 || threads > 1024 || gpus < 1 || gpus > 1024)
    config.fail("ngpus", "expected 1 to 1024 threads and GPUs");
  for (JsonObject& device : config.objects("devices")) {
    group.ranks += static_cast<int>(threads * gpus);
    group.hosts.insert(device.text("hostname"));
    if (raw.header.gpu.empty() && device.has("device_info"))
      raw.header.gpu = device.text("device_info");
  }
  const json::value* results = document.get_object().if_contains("results");
  if (!results || !results->is_array()) root.fail("results", "expected a list");
  for (std::size_t i = 0; i < results->get_array().size(); ++i) {
    const std::string where = fmt::format("{}: results[{}]", file, i);
    const json::value& result = results->get_array()[i];
    JsonObject fields(result, where);
    std::optional<double> us = json_time(result, "out_of_place");
    if (!us) us = json_time(result, "in_place");
    if (us) add(raw, test, group, fields.integer("size"), *us, where);
  }
}

}  // namespace

RawData parse_nccl(const std::string& text, const std::string& file, const std::string& op) {
  RawData raw;
  const Test given = given_test(op);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') {
    parse_report(text, file, given, raw);
  } else {
    parse_text(text, file, given, raw);
  }
  if (raw.size() == 0) throw UserError(file, "", "no nccl-tests result of a known operation");
  return raw;
}

RawData import_nccl(const std::filesystem::path& file, const std::string& op) {
  RawData raw = parse_nccl(read_file(file, kLargeFile), file.string(), op);
  raw.set_source(file.filename().string());
  return raw;
}

}  // namespace mllmsim::fit
