// mllmsim rerun RESULTS: a run again from what its results say of it, and whether anything differs.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/rerun/rerun.hpp"
#include "results/text/figures.hpp"
#include "results/text/text_table.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/json_writer.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

constexpr const char* kUsage =
    "usage: mllmsim rerun RESULTS [options]\n\n"
    "Repeats a run from the metadata of its results and compares every figure, to the last bit.\n"
    "RESULTS is the directory of a run, or one Parquet file of it; or a sweep's, and then --point\n"
    "or --where choose one row. Exit code 0: all is the same; 1: something differs, which is\n"
    "listed, as is what changed since (calibration, data, version); 2: this is no result of "
    "ours.\n";

rerun::Choice row_chosen(const po::variables_map& values) {
  rerun::Choice out;
  if (values.count("point")) out.point = values["point"].as<std::int64_t>();
  if (!values.count("where")) return out;
  for (const std::string& w : values["where"].as<std::vector<std::string>>()) {
    const auto equals = w.find('=');
    if (equals == std::string::npos)
      throw UserError("command line", "--where", "expected KEY=VALUE, found " + w);
    out.where[w.substr(0, equals)] = w.substr(equals + 1);
  }
  return out;
}

std::string share_text(const rerun::Difference& d) {
  return d.share ? fmt::format("{:.2g} %", *d.share * 100) : "";
}

std::string text_of(const rerun::Rerun& r) {
  std::string out = fmt::format(
      "{} ({}): {}\n", r.run, r.strategy,
      r.same()
          ? fmt::format("the same: {} values of {} tables, events {}", r.values, r.tables, r.digest)
          : "differs");
  for (const std::string& changed : r.changed) out += "  changed since: " + changed + "\n";
  if (r.differences.empty()) return out;
  constexpr std::size_t kWidth = 120;
  using results::Align;
  results::TextTable table({{"table", Align::left},
                            {"column", Align::left},
                            {"rows"},
                            {"then", Align::right, true},
                            {"now", Align::right, true},
                            {"largest difference"}});
  for (const rerun::Difference& d : r.differences)
    table.add_row({d.table, d.column, std::to_string(d.rows), d.before, d.now, share_text(d)});
  return out + table.text(2, kWidth);
}

std::string json_of(const rerun::Rerun& r) {
  boost::json::array differences, changed;
  for (const std::string& text : r.changed) changed.emplace_back(text);
  for (const rerun::Difference& d : r.differences) {
    boost::json::object one{{"table", d.table},
                            {"column", d.column},
                            {"rows", d.rows},
                            {"before", d.before},
                            {"now", d.now}};
    one["relative_difference"] = d.share ? boost::json::value(*d.share) : boost::json::value();
    differences.push_back(std::move(one));
  }
  return pretty_json(boost::json::object{{"run", r.run},
                                         {"strategy", r.strategy},
                                         {"same", r.same()},
                                         {"values", r.values},
                                         {"event_digest", r.digest},
                                         {"changed", std::move(changed)},
                                         {"differences", std::move(differences)}});
}

}  // namespace

int rerun_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("from", po::value<std::string>()->default_value(""),
                        "directory where files are that the scenario names (default: this one)")(
      "point", po::value<std::int64_t>(), "of a sweep: the number of the point")(
      "where", po::value<std::vector<std::string>>()->composing(),
      "of a sweep: the row with KEY=VALUE, as often as needed")("json",
                                                                "print JSON instead of a table");
  po::variables_map values;
  std::vector<std::string> words;
  if (!parse(arguments, kUsage, options, values, words)) return 0;
  if (words.size() != 1)
    throw UserError("command line", "",
                    fmt::format("rerun needs the results of one run, found {}", words.size()));
  const rerun::Rerun done =
      rerun::rerun(words.front(), row_chosen(values), values["from"].as<std::string>());
  if (values.count("json"))
    print_data(json_of(done));
  else
    print_text(text_of(done));
  return done.same() ? 0 : kDiffers;
}

}  // namespace mllmsim::cli
