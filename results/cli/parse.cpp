#include <fmt/format.h>
#include <fmt/ostream.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {

bool is_override(const std::string& word) {
  std::error_code error;  // too long a name, say: no file then
  return word.find('=') != std::string::npos && !std::filesystem::exists(word, error);
}

bool parse(const Arguments& arguments, const std::string& usage, po::options_description options,
           po::variables_map& values, std::vector<std::string>& words) {
  options.add_options()("help,h", "show this and exit");
  po::options_description all = options;
  all.add_options()("words", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("words", -1);
  try {
    po::store(po::command_line_parser(arguments).options(all).positional(positional).run(), values);
    po::notify(values);
  } catch (const po::error& e) {
    throw UserError("command line", "",
                    fmt::format("{} (--help lists the options; fields of a scenario are set "
                                "without dashes: tp=2)",
                                e.what()));
  }
  if (values.count("words")) words = values["words"].as<std::vector<std::string>>();
  if (!values.count("help")) return true;
  std::ostringstream text;
  text << options;
  print_text(usage + "\n" + text.str());
  return false;
}

std::optional<std::size_t> count_of(const po::variables_map& values, const char* option,
                                    std::size_t most) {
  if (!values.count(option)) return std::nullopt;
  const auto& text = values[option].as<std::string>();
  const auto number = to_number<std::size_t>(text);
  if (!number || *number < 1 || *number > most)
    throw UserError("command line", fmt::format("--{}", option),
                    fmt::format("expected a number from 1 to {}, found {}", most, text));
  return number;
}

void add_price_option(po::options_description& options) {
  options.add_options()("price-per-gpu-hour", po::value<double>(),
                        "also say what the training run costs, in the currency of this price");
}

std::optional<double> price_of(const po::variables_map& values) {
  if (!values.count("price-per-gpu-hour")) return std::nullopt;
  const auto price = values["price-per-gpu-hour"].as<double>();
  if (!std::isfinite(price) || price <= 0)
    throw UserError("command line", "--price-per-gpu-hour",
                    fmt::format("expected a price above 0, found {}", price));
  return price;
}

}  // namespace mllmsim::cli
