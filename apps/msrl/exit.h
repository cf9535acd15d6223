// An exit code that is neither success nor an error message.
#ifndef APPS_MSRL_EXIT_H_
#define APPS_MSRL_EXIT_H_

namespace msrl::app {

// Thrown by a command that has said all there is to say.
struct Exit {
  int code = 0;
};

}  // namespace msrl::app

#endif  // APPS_MSRL_EXIT_H_
