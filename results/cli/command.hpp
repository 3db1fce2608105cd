// A sub-command of `mllmsim`: one .cpp each, listed in main.cpp.
#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <vector>

namespace mllmsim::cli {

using Arguments = std::vector<std::string>;

struct Command {
  const char* name;
  const char* description;  // one line
  int (*run)(const Arguments&);
};

int run_command(const Arguments& arguments);
int rerun_command(const Arguments& arguments);
int sweep_command(const Arguments& arguments);
int merge_command(const Arguments& arguments);
int compare_command(const Arguments& arguments);
int explain_command(const Arguments& arguments);
int calibrate_command(const Arguments& arguments);
int list_command(const Arguments& arguments);
int pack_command(const Arguments& arguments);
int plot_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int trace_command(const Arguments& arguments);
int validate_command(const Arguments& arguments);

// Exit code of rerun if something differs.
inline constexpr int kDiffers = 1;

// Whether a word of the command line is key=value, and not a file that is there.
bool is_override(const std::string& word);

// Parses `arguments` into options and positional words. Returns false after printing `usage` and
// the options for --help. Unknown or malformed options are a UserError.
bool parse(const Arguments& arguments, const std::string& usage,
           boost::program_options::options_description options,
           boost::program_options::variables_map& values, std::vector<std::string>& words);

// The whole number of an option that was read as text, from 1 to `most`; nothing if it is not
// given.
std::optional<std::size_t> count_of(const boost::program_options::variables_map& values,
                                    const char* option, std::size_t most);

// --price-per-gpu-hour of run, sweep, compare, explain and report, and its value if it was given.
void add_price_option(boost::program_options::options_description& options);
std::optional<double> price_of(const boost::program_options::variables_map& values);

// What --help says of key=value.
inline constexpr const char* kShortForms =
    "tp, pp, vpp, cp, ep, etp, dp, mbs and gbs are short "
    "for\nparallelism.tensor_model_parallel_size, ...: "
    "tp=4.\n";

}  // namespace mllmsim::cli
