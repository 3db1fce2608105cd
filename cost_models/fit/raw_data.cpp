#include "cost_models/fit/raw_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "cost_models/kernels/names.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/json_writer.hpp"
#include "sim/base/quantile.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::fit {
namespace {

namespace json = boost::json;

constexpr int kDigits = 6;  // timings repeat to three at best

Seconds time(JsonObject& line) { return {line.positive("us") * 1e-6}; }

GemmMeasurement read_gemm(JsonObject& line) {
  GemmMeasurement g;
  g.kernel = {line.count("m"), line.count("n"), line.count("k"),
              line.choice<costs::GemmPass>("pass")};
  if (line.has("format")) g.kernel.format = line.choice<NumberFormat>("format");
  if (line.has("experts")) {
    g.kernel.batch = line.count("experts");
    g.kernel.grouped = true;
  }
  g.sustained = line.has("mode") && line.text("mode") == "sustained";
  g.serving = line.has("serving") && line.flag("serving");
  g.time = time(line);
  return g;
}

AttentionMeasurement read_attention(JsonObject& line) {
  AttentionMeasurement a;
  a.kernel.sequences = {{line.count("length"), line.count("batch")}};
  a.kernel.heads = line.count("heads");
  a.kernel.kv_heads = line.count("kv_heads");
  a.kernel.head_dim = line.count("head_dim");
  a.kernel.causal = line.flag("causal");
  a.kernel.backward = line.flag("backward");
  a.serving = line.has("serving") && line.flag("serving");
  a.time = time(line);
  return a;
}

ExpertsMeasurement read_experts(JsonObject& line) {
  ExpertsMeasurement e{line.count("tokens"), line.count("rows"), line.count("experts"),
                       line.count("hidden_size"), line.count("width")};
  if (line.has("format")) e.format = line.choice<NumberFormat>("format");
  e.time = time(line);
  return e;
}

ExchangeMeasurement read_exchange(JsonObject& line) {
  ExchangeMeasurement x;
  const std::int64_t ranks = line.count("ranks"), sms = line.count("sms");
  if (ranks < 2 || ranks > 1'000'000) line.fail("ranks", "expected 2 to 1000000");
  if (sms > 1'000'000) line.fail("sms", "too many");
  x.kernel = {line.flag("combine"),
              false,
              line.count("tokens"),
              line.count("bytes"),
              line.positive("ranks_per_token"),
              0,
              {static_cast<int>(ranks), 1, 1}};
  x.sms = static_cast<int>(sms);
  x.time = time(line);
  return x;
}

costs::Collective read_collective(JsonObject& line) {
  const std::int64_t ranks = line.count("ranks"), nodes = line.count("nodes");
  if (ranks < 2 || ranks > 1'000'000 || ranks % nodes != 0)
    line.fail("ranks", "expected 2 or more, a multiple of nodes");
  return {line.choice<costs::CollectiveOp>("op"),
          Bytes{line.count("bytes")},
          {static_cast<int>(ranks), static_cast<int>(nodes), 1}};
}

void read_line(JsonObject& line, RawData& raw) {
  const std::string part = line.text("part");
  if (part == "gemm") {
    raw.gemm.push_back(read_gemm(line));
  } else if (part == "attention") {
    raw.attention.push_back(read_attention(line));
  } else if (part == "memory_bound") {
    raw.memory_bound.push_back({{line.choice<costs::MemoryOp>("op"), Bytes{line.count("bytes")},
                                 line.integer("rows"), line.integer("row_length")},
                                time(line)});
  } else if (part == "collective") {
    raw.collectives.push_back({read_collective(line), time(line)});
  } else if (part == "p2p") {
    raw.p2p.push_back({{Bytes{line.count("bytes")}, line.flag("same_node"), 1}, time(line)});
  } else if (part == "experts") {
    raw.experts.push_back(read_experts(line));
  } else if (part == "token_exchange") {
    raw.exchanges.push_back(read_exchange(line));
  } else if (part == "launch") {
    raw.launch.push_back(time(line));
  } else if (part == "overlap") {
    raw.overlap.push_back(line.positive("slowdown"));
  } else if (part != "copy") {
    line.fail("part",
              "expected gemm, attention, memory_bound, collective, p2p, experts, token_exchange, "
              "launch, overlap or copy");
  }
}

// Of a header, whatever is known and is text.
costs::CalibrationHeader read_header(const json::value& value) {
  const json::object& fields = value.get_object();
  costs::CalibrationHeader h;
  const auto take = [&](const char* key, std::string& out) {
    const json::value* found = fields.if_contains(key);
    if (!found) return;
    out = found->is_string() ? std::string(found->get_string()) : line_json(*found);
  };
  take("gpu", h.gpu);
  take("description", h.description);
  take("measured_by", h.measured_by);
  take("licence", h.licence);
  take("date", h.date);
  take("driver", h.driver);
  take("cuda", h.cuda);
  take("cublas", h.cublas);
  take("nccl", h.nccl);
  take("clocks", h.clocks);
  return h;
}

json::object line_of(const GemmMeasurement& g) {
  json::object o{{"part", "gemm"},
                 {"m", g.kernel.m},
                 {"n", g.kernel.n},
                 {"k", g.kernel.k},
                 {"pass", name_of(g.kernel.pass)}};
  if (g.kernel.format != NumberFormat::bf16) o["format"] = name_of(g.kernel.format);
  if (g.kernel.grouped) o["experts"] = g.kernel.batch;
  if (g.sustained) o["mode"] = "sustained";
  if (g.serving) o["serving"] = true;
  o["us"] = g.time.value * 1e6;
  return o;
}

json::object line_of(const AttentionMeasurement& a) {
  const SequenceGroup& group = a.kernel.sequences.front();
  json::object o{{"part", "attention"},           {"length", group.length},
                 {"batch", group.count},          {"heads", a.kernel.heads},
                 {"kv_heads", a.kernel.kv_heads}, {"head_dim", a.kernel.head_dim},
                 {"causal", a.kernel.causal},     {"backward", a.kernel.backward}};
  if (a.serving) o["serving"] = true;
  o["us"] = a.time.value * 1e6;
  return o;
}

json::object line_of(const Measurement<costs::MemoryBound>& m) {
  return {{"part", "memory_bound"},
          {"op", name_of(m.kernel.op)},
          {"bytes", m.kernel.bytes.value},
          {"rows", m.kernel.rows},
          {"row_length", m.kernel.row_length},
          {"us", m.time.value * 1e6}};
}

json::object line_of(const Measurement<costs::Collective>& m) {
  return {{"part", "collective"},          {"op", name_of(m.kernel.op)},
          {"ranks", m.kernel.group.ranks}, {"nodes", m.kernel.group.nodes},
          {"bytes", m.kernel.bytes.value}, {"us", m.time.value * 1e6}};
}

json::object line_of(const Measurement<costs::PointToPoint>& m) {
  return {{"part", "p2p"},
          {"same_node", m.kernel.same_node},
          {"bytes", m.kernel.bytes.value},
          {"us", m.time.value * 1e6}};
}

json::object line_of(const ExpertsMeasurement& e) {
  json::object o{{"part", "experts"},    {"tokens", e.tokens},           {"rows", e.rows},
                 {"experts", e.experts}, {"hidden_size", e.hidden_size}, {"width", e.width}};
  if (e.format != NumberFormat::bf16) o["format"] = name_of(e.format);
  o["us"] = e.time.value * 1e6;
  return o;
}

json::object line_of(const ExchangeMeasurement& x) {
  return {{"part", "token_exchange"},
          {"combine", x.kernel.combine},
          {"tokens", x.kernel.tokens},
          {"bytes", x.kernel.bytes},
          {"ranks_per_token", x.kernel.ranks_per_token},
          {"ranks", x.kernel.group.ranks},
          {"sms", x.sms},
          {"us", x.time.value * 1e6}};
}

json::object line_of(Seconds launch) { return {{"part", "launch"}, {"us", launch.value * 1e6}}; }
json::object line_of(double slowdown) { return {{"part", "overlap"}, {"slowdown", slowdown}}; }

template <class Use>
void each_line(const RawData& raw, Use use) {
  const auto lines = [&](const auto& list) {
    for (const auto& item : list) use(line_of(item));
  };
  lines(raw.gemm), lines(raw.attention), lines(raw.memory_bound), lines(raw.collectives);
  lines(raw.p2p), lines(raw.experts), lines(raw.exchanges), lines(raw.launch), lines(raw.overlap);
}

template <class T>
void append_all(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

std::size_t RawData::size() const {
  return gemm.size() + attention.size() + memory_bound.size() + collectives.size() + p2p.size() +
         experts.size() + exchanges.size() + launch.size() + overlap.size();
}

void RawData::set_source(const std::string& source) {
  if (!gemm.empty()) sources["gemm"] = {source};
  if (!attention.empty()) sources["attention"] = {source};
  if (!memory_bound.empty()) sources["memory_bound"] = {source};
  if (!collectives.empty()) sources["collectives"] = {source};
  if (!p2p.empty()) sources["point_to_point"] = {source};
  if (!experts.empty()) sources["experts"] = {source};
  if (!exchanges.empty()) sources["token_exchange"] = {source};
}

void RawData::append(RawData other) {
  const auto keep = [](std::string& mine, std::string& theirs) {
    if (mine.empty()) mine = std::move(theirs);
  };
  costs::CalibrationHeader &h = header, &o = other.header;
  keep(h.gpu, o.gpu), keep(h.description, o.description), keep(h.measured_by, o.measured_by);
  keep(h.licence, o.licence), keep(h.date, o.date), keep(h.driver, o.driver);
  keep(h.cuda, o.cuda), keep(h.cublas, o.cublas), keep(h.nccl, o.nccl), keep(h.clocks, o.clocks);
  for (auto& [part, list] : other.sources) append_all(sources[part], list);
  append_all(gemm, other.gemm);
  append_all(attention, other.attention);
  append_all(memory_bound, other.memory_bound);
  append_all(collectives, other.collectives);
  append_all(p2p, other.p2p);
  append_all(experts, other.experts);
  append_all(exchanges, other.exchanges);
  append_all(launch, other.launch);
  append_all(overlap, other.overlap);
}

void RawData::join_equal() {
  const auto join = [](auto& list) {
    std::map<decltype(list.front().kernel), std::vector<double>> times;
    for (const auto& m : list) times[m.kernel].push_back(m.time.value);
    auto all = std::move(list);
    list.clear();
    for (auto& m : all) {
      const auto found = times.find(m.kernel);
      if (found == times.end()) continue;
      m.time = {median(found->second)};
      list.push_back(m);
      times.erase(found);
    }
  };
  join(gemm), join(attention), join(memory_bound);
}

void RawData::drop_odd_fp32() {
  const auto wide = [](const GemmMeasurement& g) { return g.kernel.format == NumberFormat::fp32; };
  if (!std::all_of(gemm.begin(), gemm.end(), wide)) std::erase_if(gemm, wide);
}

RawData parse_raw(const std::string& text, const std::string& file) {
  RawData raw;
  std::string source;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = take_line(rest);
    if (trimmed(line).empty()) continue;
    const std::string where = fmt::format("{}:{}", file, number);
    const json::value value = parse_json(line, file, number);
    JsonObject object(value, where);
    if (object.has("header")) {
      JsonObject header = object.object("header");
      raw.header = read_header(value.get_object().at("header"));
      if (header.has("source")) source = header.text("source");
    } else {
      read_line(object, raw);
    }
  }
  if (!source.empty()) raw.set_source(source);
  return raw;
}

namespace {

std::map<std::string, RawReader>& registered_formats() {
  static std::map<std::string, RawReader> formats;
  return formats;
}

RawData read_text(const std::filesystem::path& file) {
  const std::string text = read_file(file, kLargeFile);
  return file.extension() == ".csv" ? parse_raw_csv(text, file.string())
                                    : parse_raw(text, file.string());
}

}  // namespace

void register_raw_format(const std::string& extension, RawReader reader) {
  registered_formats()[extension] = reader;
}

RawData read_raw(const std::filesystem::path& file) {
  const auto& formats = registered_formats();
  const auto format = formats.find(file.extension().string());
  RawData raw = format == formats.end() ? read_text(file) : format->second(file);
  if (raw.sources.empty()) raw.set_source(file.filename().string());
  return raw;
}

std::string to_json_lines(const RawData& raw) {
  const costs::CalibrationHeader& h = raw.header;
  json::object header{{"gpu", h.gpu},
                      {"description", h.description},
                      {"measured_by", h.measured_by},
                      {"licence", h.licence},
                      {"date", h.date},
                      {"driver", h.driver},
                      {"cuda", h.cuda},
                      {"cublas", h.cublas},
                      {"nccl", h.nccl},
                      {"clocks", h.clocks}};
  std::set<std::string> sources;
  for (const auto& [part, list] : raw.sources) sources.insert(list.begin(), list.end());
  if (!sources.empty()) header["source"] = fmt::format("{}", fmt::join(sources, "; "));
  std::string out = line_json(json::object{{"header", header}}, kDigits) + "\n";
  each_line(raw, [&](const json::object& line) { out += line_json(line, kDigits) + "\n"; });
  return out;
}

std::string to_shape_lines(const RawData& raw) {
  std::string out;
  each_line(raw, [&](json::object line) {
    line.erase("us");
    out += line_json(line, kDigits) + "\n";
  });
  return out;
}

}  // namespace mllmsim::fit
