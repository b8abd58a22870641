//! The words by which providers of models say that an account has nothing left: its credit, or its quota of a day or a
//! month. To wait does not help then, as it does after a rate limit, although the status is often the same.

/// Codes and types of errors, in lower case, as of November 2026. 1112, 1113, 1304, 1308, 1309 and 1310 are GLM's: an account
/// that is locked, in arrears, or without calls for this day, some hours, its plan or this week.
const CODES: [&str; 26] = [
    "insufficient_quota",
    "insufficient_user_quota",
    "insufficient_balance",
    "insufficient_balance_error",
    "insufficient_credits",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "credit_balance_exhausted",
    "exceeded_current_quota_error",
    "payment_required",
    "arrearage",
    "accountoverdueerror",
    "allocationquota.freetieronly",
    "usage_limit_reached",
    "usage_not_included",
    "budget_exceeded",
    "quota_exceeded",
    "access_terminated_error",
    "setlimitexceeded",
    "1112",
    "1113",
    "1304",
    "1308",
    "1309",
    "1310",
];

/// Words of messages, in lower case.
const WORDS: [&str; 69] = [
    // OpenAI, and those who speak its protocol.
    "insufficient_quota",
    "insufficient quota",
    "billing hard limit",
    "billing_hard_limit",
    "check your billing details",
    // Anthropic.
    "credit balance is too low",
    "credit balance too low",
    "specified api usage limits",
    "workspace api usage limits",
    "extra usage is required",
    "out of extra usage",
    // LiteLLM: budgets of a key, a user, a team or a model.
    "budget has been exceeded",
    "exceededbudget",
    "exceeded budget for",
    "crossed budget",
    // Plans with a number of requests in some hours, a day or a week: Kimi, GLM, Ollama, Copilot.
    "hour usage limit",
    "hourly usage limit",
    "session usage limit",
    "daily usage limit",
    "weekly usage limit",
    "(7-day) usage limit",
    "reached your usage limit",
    "hit your usage limit",
    "premium request allowance",
    "使用上限",
    // xAI.
    "used all available credits",
    "monthly spending limit",
    "spending limit has been reached",
    "run out of credits",
    "out of credits",
    // Kimi, DeepSeek, MiniMax, GLM, SiliconFlow.
    "exceeded current quota",
    "insufficient balance",
    "insufficient account balance",
    "no resource package",
    "monthly usage limit",
    "for this billing cycle",
    "余额不足",
    "欠费",
    "额度不足",
    "额度已用",
    // DashScope, Volcengine.
    "account is in good standing",
    "overdue balance",
    "overdue account",
    "set inference limit",
    "free tier of the model has been exhausted",
    "free quota has been",
    // OpenRouter, Hugging Face, Together, Fireworks, DeepInfra.
    "insufficient credit",
    "requires more credits",
    "more credits are required",
    "not enough credits",
    "credit limit exceeded",
    "key limit exceeded",
    "monthly included credits",
    "free-models-per-day",
    "is suspended, possibly",
    "is suspended due to",
    "account is suspended",
    "inference prohibited",
    // Cohere: a key for trial has calls for each minute, too.
    "calls / month",
    "calls per month",
    "payment required",
    // Gemini and Vertex.
    "credits are depleted",
    "monthly spending cap",
    "limit: 0,",
    // Bedrock, Cerebras.
    "too many tokens per day",
    "tokens per day limit exceeded",
    "daily token quota",
    "daily token limit",
    "daily request limit exceeded",
];

/// OpenAI's words for a spent quota. Gemini and DashScope have them for a rate limit too.
const SPENT: &str = "exceeded your current quota";

/// What an account has for a long time, and the words by which servers say that nothing of it is left.
const PERIODS: [&str; 3] = ["daily ", "weekly ", "monthly "];
const SHARES: [&str; 4] = ["quota", "free quota", "free allocation", "allocation"];
const NOTHING_LEFT: [&str; 6] = ["exceed", "used up", "reached", "exhaust", "run out", "ran out"];
/// The periods of a quota that is named with its metric.
const METRICS: [&str; 4] = ["per day", "per week", "per month", "perday"];

/// Words of a limit of requests or tokens in some time, which is over soon.
const SOON: [&str; 8] =
    ["per minute", "per second", "/minute", "/second", "per-min", "concurren", "#token-limit", "#rate-limit"];
/// Words of a fault of the server, or of a wait that it names: the quota beside them is not what is used up.
const NOT_OF_QUOTA: [&str; 5] = ["connection", "timeout", "retry in", "retry after", "retry shortly"];

/// Whether an error says that the account has nothing left. `codes`: the codes of the error, with blanks between.
pub fn is_spent(codes: &str, message: &str) -> bool {
    let (codes, message) = (codes.to_lowercase(), message.to_lowercase());
    if SOON.iter().any(|words| message.contains(words)) {
        return false;
    }
    let is_googles = codes.contains("resource_exhausted") || message.contains("retry in ");
    codes.split_whitespace().any(|code| CODES.contains(&code))
        || WORDS.iter().any(|words| message.contains(words))
        || message.contains(SPENT) && !is_googles
        || is_long_quota(&message)
}

/// Whether a message, in lower case, says that a quota of a day, a week or a month is used up.
fn is_long_quota(message: &str) -> bool {
    let is_share = |behind: &str| SHARES.iter().any(|share| behind.starts_with(share));
    let has_share = PERIODS.iter().any(|period| message.split(period).skip(1).any(is_share));
    has_share
        && NOTHING_LEFT.iter().any(|words| message.contains(words))
        && !NOT_OF_QUOTA.iter().any(|words| message.contains(words))
        || message.contains("quota exceeded") && METRICS.iter().any(|metric| message.contains(metric))
}

/// Words and codes of a server that has no place for a request now, in lower case, whatever its status is: gateways answer
/// 400 and 403 with them.
const BUSY: [&str; 15] = [
    "overloaded",
    "throttlingexception",
    "too many requests",
    "rate limit",
    "rate_limit",
    "ratelimiterror",
    "is loading",
    "currently loading",
    "loading model",
    "server busy",
    "server is busy",
    "please wait before trying again",
    "capacity exceeded",
    "at capacity",
    "no capacity available",
];

/// Whether an error says that the same request may be answered soon. `codes`: the codes of the error, with blanks between.
pub fn is_busy(codes: &str, message: &str) -> bool {
    let said = format!("{codes} {message}").to_lowercase();
    BUSY.iter().any(|words| said.contains(words))
}

/// Whether Google's name of a quota is that of one for a day.
pub fn is_of_a_day(quota: &str) -> bool {
    let quota = quota.to_lowercase();
    quota.contains("perday") || quota.contains("per_day")
}

#[cfg(test)]
mod tests {
    use super::{is_busy, is_of_a_day, is_spent};

    #[test]
    fn each_provider_says_that_nothing_is_left_in_its_own_words() {
        for (codes, message) in [
            (
                "insufficient_quota insufficient_quota",
                "You exceeded your current quota, please check your plan and billing details.",
            ),
            ("", "You exceeded your current quota, please check your plan and billing details."),
            ("billing_hard_limit_reached invalid_request_error", "Billing hard limit has been reached"),
            ("billing_not_active", "Your account is not active, please check your billing details on our website."),
            ("invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
            (
                "invalid_request_error",
                "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
            ),
            ("rate_limit_error", "Extra usage is required for long context requests."),
            ("exceeded_current_quota_error", "Your account org-1 <ak-1> is suspended due to insufficient balance"),
            ("1113", "余额不足或无可用资源包,请充值。"),
            ("1113", "Insufficient balance or no resource package. Please recharge."),
            ("insufficient_balance_error", "insufficient balance (1008)"),
            ("invalid_request_error", "Insufficient Balance"),
            ("Arrearage Arrearage", "Access denied, please make sure your account is in good standing."),
            ("AllocationQuota.FreeTierOnly", "The free tier of the model has been exhausted."),
            ("", "Your team 1 has either used all available credits or reached its monthly spending limit."),
            (
                "",
                "This request requires more credits, or fewer max_tokens. You requested up to 16384 tokens, but can only afford 3919.",
            ),
            ("", "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day"),
            (
                "PRECONDITION_FAILED error",
                "Account a is suspended, possibly due to reaching the monthly spending limit",
            ),
            ("", "You have exceeded your monthly included credits for Inference Providers."),
            ("RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."),
            (
                "RESOURCE_EXHAUSTED",
                "Quota exceeded for metric: free_tier_requests, limit: 0, model: m\nPlease retry in 25.4s.",
            ),
            ("usage_limit_reached", "The usage limit has been reached"),
            ("", "Too many tokens per day, please wait before trying again."),
            ("1308", "已达到 5 小时的使用上限。您的限额将在 2026-08-25 07:41:44 重置。"),
            ("access_terminated_error", "You've reached your weekly (7-day) usage limit."),
            ("", "You've reached your 5-hour usage limit. To continue now, purchase extra usage"),
            ("budget_exceeded 429", "Budget has been exceeded! Current cost: 26.075, Max budget: 0.25"),
            ("", "Budget has been exceeded! Team=99c7 Current cost: 3, Max budget: 1"),
            ("auth_error", "ExceededBudget: End User=x over budget. Spend=0.0008, Budget=0.0001"),
            ("", "No deployments available - crossed budget: Exceeded budget for deployment model_name: x"),
            ("", "you (somebody) have reached your session usage limit, please wait or upgrade to continue"),
            ("new_api_error", "用户额度不足, 剩余额度: -0.01"),
            ("invalid_request_error", "You're out of extra usage. Add more in your settings and keep going."),
            ("SetLimitExceeded", "Your account has reached the set inference limit for the [m] model."),
            ("quota_exceeded", "You have exceeded your premium request allowance."),
            ("too_many_tokens_error quota", "Tokens per day limit exceeded - too many tokens processed."),
            ("", "Monthly quota exceeded"),
            ("", "You have exceeded your daily quota."),
            ("", "You are using a Trial key, which is limited to 1000 API calls / month."),
            ("4006", "you have used up your daily free allocation of 10,000 neurons"),
            ("RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Generate requests per day'"),
        ] {
            assert!(is_spent(codes, message), "{codes} {message}");
        }
    }

    #[test]
    fn a_limit_that_is_over_soon_is_waited_for() {
        for (codes, message) in [
            ("", ""),
            (
                "rate_limit_exceeded requests",
                "Rate limit reached for gpt-4 on requests per min (RPM): Limit 3. Please try again in 20s.",
            ),
            (
                "rate_limit_exceeded",
                "Rate limit reached on tokens per day (TPD): Limit 100000. Please try again in 9m38.016s. Need more \
                tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
            ),
            (
                "rate_limit_error",
                "This request would exceed your organization's rate limit of 50,000 input tokens per minute",
            ),
            (
                "429 RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan and billing details. Please retry in 1s.",
            ),
            ("429 RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
            ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
            (
                "insufficient_quota",
                "You exceeded your current quota. For details, see: https://help.aliyun.com/error-code#token-limit",
            ),
            ("Throttling.AllocationQuota", "Allocated quota exceeded, please increase your quota limit."),
            (
                "429",
                "Requests have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 86400 seconds.",
            ),
            ("rate_limit_reached_error", "Your account reached max request: 3, please try again after 1 seconds"),
            ("429", "Rate limit exceeded: free-models-per-min."),
            ("1302", "Rate limit reached for requests"),
            ("ThrottlingException", "Too many tokens, please wait before trying again."),
            ("overloaded_error", "Overloaded"),
            (
                "too_many_tokens_error token_quota_exceeded",
                "Tokens per minute limit exceeded - too many tokens processed.",
            ),
            ("", "You are using a Trial key, which is limited to 10 API calls / minute."),
            ("RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Generate requests per minute'"),
            ("", "The daily quota is checked every hour. Please slow down."),
            ("rate_limit_error", "Server is temporarily limiting requests (not your usage limit)"),
            (
                "rate_limit_reached_error",
                "request reached organization TPD rate limit, current: 1506556, limit: 1500000",
            ),
        ] {
            assert!(!is_spent(codes, message), "{codes} {message}");
        }
    }

    #[test]
    fn a_server_that_has_no_place_now_says_so_in_its_own_words() {
        for (codes, message) in [
            ("", "Our servers are currently overloaded. Please try again later."),
            ("", "Model is loading, please try again"),
            ("ThrottlingException", "no"),
            ("", "Too many tokens, please wait before trying again."),
            ("", "Service tier capacity exceeded for this model."),
            ("rate_limited", "Rate limit exceeded"),
        ] {
            assert!(is_busy(codes, message), "{codes} {message}");
        }
        for message in ["", "loading failed", "the tool capacity is unknown", "Please try again with fewer tools."] {
            assert!(!is_busy("invalid_request_error 400", message), "{message}");
        }
    }

    #[test]
    fn googles_quotas_of_a_day_are_known_by_their_names() {
        assert!(is_of_a_day("GenerateRequestsPerDayPerProjectPerModel-FreeTier"));
        assert!(is_of_a_day("generativelanguage.googleapis.com/generate_requests_per_model_per_day"));
        assert!(!is_of_a_day("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"));
    }
}
