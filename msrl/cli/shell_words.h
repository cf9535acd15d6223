// Commands as one would type them.
#ifndef MSRL_CLI_SHELL_WORDS_H_
#define MSRL_CLI_SHELL_WORDS_H_

#include <string>

namespace msrl::app {

// The word, between quotes if a shell would take it apart.
std::string Quoted(const std::string& word);

}  // namespace msrl::app

#endif  // MSRL_CLI_SHELL_WORDS_H_
